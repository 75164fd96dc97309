"""Every error answer has one shape, and every answer the same headers."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.unit.api.in_memory import InMemoryQueue, valid_body

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none';frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Origin-Agent-Cluster": "?1",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "X-Download-Options": "noopen",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Permitted-Cross-Domain-Policies": "none",
    "X-XSS-Protection": "0",
}
JSON = {"Content-Type": "application/json"}
NOBODY = UUID(int=0)


def conflict(client: FlaskClient) -> TestResponse:
    """Use one key twice."""
    client.post("/notifications", json=valid_body())
    return client.post("/notifications", json=valid_body(recipient="b@example.com"))


def redrive_cancelled(client: FlaskClient) -> TestResponse:
    """Put back a job that was cancelled."""
    created = client.post("/notifications", json=valid_body())
    assert created.json is not None
    path = f"/notifications/{created.json['id']}"
    client.delete(path)
    return client.post(f"{path}/retry")


WITH_DETAILS = {"fields", "query", "selection"}
ERRORS: dict[str, tuple[int, str, Callable[[FlaskClient], TestResponse]]] = {
    "fields": (400, "Bad Request", lambda c: c.post("/notifications", json={})),
    "horizon": (
        400,
        "Bad Request",
        lambda c: c.post(
            "/notifications", json=valid_body(sendAt="2099-01-01T00:00:00Z", delaySeconds=...)
        ),
    ),
    "query": (400, "Bad Request", lambda c: c.get("/notifications?limit=0")),
    "cursor": (400, "Bad Request", lambda c: c.get("/notifications?cursor=x")),
    "selection": (400, "Bad Request", lambda c: c.post("/notifications/retry", json={"x": 1})),
    "body": (400, "Bad Request", lambda c: c.post("/notifications", data=b"[", headers=JSON)),
    "id": (400, "Bad Request", lambda c: c.get("/notifications/1")),
    "path": (404, "Not Found", lambda c: c.get("/nowhere")),
    "job": (404, "Not Found", lambda c: c.get(f"/notifications/{NOBODY}")),
    "job to cancel": (404, "Not Found", lambda c: c.delete(f"/notifications/{NOBODY}")),
    "job to redrive": (404, "Not Found", lambda c: c.post(f"/notifications/{NOBODY}/retry")),
    "method": (405, "Method Not Allowed", lambda c: c.put("/notifications")),
    "key": (409, "Conflict", conflict),
    "status": (409, "Conflict", redrive_cancelled),
    "size": (
        413,
        "Payload Too Large",
        lambda c: c.post("/notifications", data=b" " * 65_537, headers=JSON),
    ),
    "type": (415, "Unsupported Media Type", lambda c: c.post("/notifications", data=b"{}")),
}


def check_shape(response: TestResponse, status: int, error: str) -> None:
    """Check all that error answers have in common."""
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    body: dict[str, Any] = json.loads(response.data)
    keys = ["statusCode", "error", "message", "details", "path", "requestId"]
    assert list(body) == [key for key in keys if key in body]
    assert set(keys) - set(body) <= {"details"}
    assert (body["statusCode"], body["error"]) == (status, error)
    assert response.request.path == body["path"]
    assert response.headers["X-Request-ID"] == body["requestId"]
    check_headers(response)


def check_headers(response: TestResponse) -> None:
    """Check the headers of every answer."""
    assert {name: response.headers.get_all(name) for name in SECURITY_HEADERS} == {
        name: [value] for name, value in SECURITY_HEADERS.items()
    }
    assert response.headers["X-Request-ID"]
    assert not {"Server", "X-Powered-By", "Set-Cookie"} & set(response.headers.keys())


@pytest.mark.parametrize("case", ERRORS)
def test_every_refusal_has_the_one_shape(case: str) -> None:
    status, error, ask = ERRORS[case]

    response = ask(InMemoryQueue().app().test_client())

    check_shape(response, status, error)
    assert ("details" in json.loads(response.data)) == (case in WITH_DETAILS)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/notifications"),
        ("GET", f"/notifications/{NOBODY}"),
        ("DELETE", f"/notifications/{NOBODY}"),
        ("POST", f"/notifications/{NOBODY}/retry"),
        ("POST", "/notifications/retry"),
    ],
)
def test_a_surprise_has_the_one_shape(method: str, path: str) -> None:
    client = InMemoryQueue(fails_with=KeyError("internal")).app().test_client()

    response = client.open(path, method=method)

    check_shape(response, 500, "Internal Server Error")
    assert b"internal" not in response.data


def test_a_worker_refuses_in_the_one_shape() -> None:
    response = InMemoryQueue().app("worker").test_client().get("/notifications")

    check_shape(response, 404, "Not Found")


def test_success_and_health_carry_the_same_headers() -> None:
    queue = InMemoryQueue()
    client = queue.app().test_client()

    created = client.post("/notifications", json=valid_body())
    assert created.json is not None
    check_headers(created)
    check_headers(client.get("/notifications"))
    check_headers(client.delete(f"/notifications/{created.json['id']}"))
    check_headers(client.post("/notifications/retry"))
    check_headers(client.get("/health"))
    check_headers(client.head("/health"))
    queue.up = False
    check_headers(client.get("/health"))
