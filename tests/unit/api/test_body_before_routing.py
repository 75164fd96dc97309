"""A body is read and judged before anything else of a request, as servers really send it."""

import gzip
import json
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from notify_queue.api.content import MAX_BODY_BYTES
from tests.unit.api.in_memory import InMemoryQueue, valid_body

PLACES = [
    ("POST", "/notifications"),
    ("PUT", "/notifications"),
    ("GET", "/notifications/not-a-uuid"),
    ("DELETE", "/nowhere"),
    ("GET", "/health"),
]


def send(client: FlaskClient, method: str, path: str, content: bytes) -> TestResponse:
    """Send JSON of a known length."""
    return client.open(path, method=method, data=content, content_type="application/json")


def send_chunked(client: FlaskClient, content: bytes, **headers: str) -> TestResponse:
    """Send JSON in chunks: its length is not known beforehand."""
    return client.post(
        "/notifications",
        input_stream=BytesIO(content),
        content_type="application/json",
        headers={"Transfer-Encoding": "chunked", **headers},
        environ_overrides={"wsgi.input_terminated": True},
    )


def message(response: TestResponse) -> str:
    """Return the text of an error answer."""
    assert response.json is not None
    text: str = response.json["message"]
    return text


@pytest.mark.parametrize("role", ["api", "worker"])
@pytest.mark.parametrize(("method", "path"), PLACES)
class TestAnywhere:
    """Whatever the path, the method and the role."""

    def test_malformed_json_is_refused(
        self, queue: InMemoryQueue, role: str, method: str, path: str
    ) -> None:
        response = send(queue.app(role).test_client(), method, path, b'{"secret-marker"')

        assert response.status_code == 400
        assert message(response) == "Malformed JSON body"
        assert b"secret-marker" not in response.data

    def test_too_much_is_refused(
        self, queue: InMemoryQueue, role: str, method: str, path: str
    ) -> None:
        content = b" " * (MAX_BODY_BYTES + 1)

        response = send(queue.app(role).test_client(), method, path, content)

        assert response.status_code == 413
        assert message(response) == "request entity too large"
        assert response.json is not None
        assert response.json["error"] == "Payload Too Large"

    def test_another_type_is_refused(
        self, queue: InMemoryQueue, role: str, method: str, path: str
    ) -> None:
        client = queue.app(role).test_client()

        response = client.open(path, method=method, data={"status": "FAILED"})

        assert response.status_code == 415
        assert message(response) == "Content-Type must be application/json"
        assert response.json is not None
        assert response.json["error"] == "Unsupported Media Type"


def test_an_empty_body_of_any_type_is_an_empty_object(client: FlaskClient) -> None:
    response = client.post("/notifications", data=b"", content_type="text/plain")

    assert message(response) == "Validation failed"
    assert client.get("/health", content_type="text/plain").status_code == 200


def test_a_chunked_body_is_read(client: FlaskClient, queue: InMemoryQueue) -> None:
    assert send_chunked(client, json.dumps(valid_body()).encode()).status_code == 201
    assert len(queue.requests) == 1


def test_a_chunked_body_has_the_same_limit(client: FlaskClient) -> None:
    def padded(size: int) -> bytes:
        body: dict[str, Any] = valid_body(payload={"text": ""})
        room = size - len(json.dumps(body))
        return json.dumps(body | {"payload": {"text": "x" * room}}).encode()

    assert send_chunked(client, padded(MAX_BODY_BYTES)).status_code == 201
    assert send_chunked(client, padded(MAX_BODY_BYTES + 1)).status_code == 413


def test_a_small_bomb_is_refused(client: FlaskClient) -> None:
    bomb = gzip.compress(b'{"a":"' + b"0" * 50_000_000)
    assert len(bomb) < MAX_BODY_BYTES

    response = send_chunked(client, bomb, **{"Content-Encoding": "gzip"})

    assert response.status_code == 413


def test_unknown_encodings_and_charsets_are_named(client: FlaskClient) -> None:
    encoded = client.post("/notifications", json={}, headers={"Content-Encoding": "foo"})
    latin = client.post("/x", data=b"{}", content_type="application/json; charset=ISO-8859-1")

    assert (encoded.status_code, message(encoded)) == (
        415,
        'unsupported content encoding "foo"',
    )
    assert (latin.status_code, message(latin)) == (415, 'unsupported charset "ISO-8859-1"')


def test_a_repeated_recipient_never_reaches_the_queue(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    content = json.dumps(valid_body())[:-1] + ', "recipient": "b@example.com"}'

    response = send(client, "POST", "/notifications", content.encode())

    assert response.status_code == 400
    assert not queue.requests


def test_a_payload_of_five_hundred_levels_is_refused(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    payload: dict[str, Any] = {}
    for _ in range(499):
        payload = {"a": payload}

    assert client.post("/notifications", json=valid_body(payload=payload)).status_code == 400
    assert not queue.requests


@pytest.mark.parametrize("server", [{}, {"wsgi.input_terminated": True}])
def test_a_client_that_leaves_in_mid_body_is_answered_like_any_other(
    client: FlaskClient, server: dict[str, Any]
) -> None:
    response = client.post(
        "/notifications",
        input_stream=BytesIO(b"{}"),
        content_type="application/json",
        environ_overrides={"CONTENT_LENGTH": "100", **server},
    )

    assert response.status_code == 400
    assert message(response) == "Request body could not be read"
