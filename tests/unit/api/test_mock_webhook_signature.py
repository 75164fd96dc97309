"""The mock receiver believes nothing that is not signed, when it knows a secret."""

import json
from base64 import b64encode
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from notify_queue.domain.signature import TOLERANCE_S, sign
from tests.unit.api.in_memory import NOW, InMemoryQueue
from tests.unit.api.mock_receiver import EVENT_ID, URL, InMemoryReceipts, an_event, use_cases

SECRET, OLD, OTHER = (letter * 32 for letter in (b"n", b"o", b"x"))
BODY = json.dumps(an_event()).encode()


@pytest.fixture
def strict(queue: InMemoryQueue, receipts: InMemoryReceipts) -> FlaskClient:
    """A receiver that knows a new and an old secret."""
    return queue.app(mock_receiver=use_cases(receipts, [SECRET, OLD])).test_client()


def post_signed(
    client: FlaskClient,
    body: bytes,
    *,
    secret: bytes = SECRET,
    signed_body: bytes | None = None,
    off_s: int = 0,
    **headers: str | None,
) -> TestResponse:
    """Post with the three headers; ``headers`` puts another in its place, or takes it out."""
    timestamp = int(NOW.timestamp()) + off_s
    signature = sign(EVENT_ID, timestamp, body if signed_body is None else signed_body, [secret])
    sent = {"id": EVENT_ID, "timestamp": str(timestamp), "signature": signature} | headers
    return client.post(
        URL,
        data=body,
        content_type="application/json",
        headers={f"Webhook-{name}": value for name, value in sent.items() if value is not None},
    )


@pytest.mark.parametrize("secret", [SECRET, OLD])
@pytest.mark.parametrize("off_s", [1 - TOLERANCE_S, 0, TOLERANCE_S])
def test_what_is_signed_with_either_secret_is_taken(
    strict: FlaskClient, secret: bytes, off_s: int
) -> None:
    assert post_signed(strict, BODY, secret=secret, off_s=off_s).status_code == 200


def test_anything_else_has_the_one_answer(strict: FlaskClient, receipts: InMemoryReceipts) -> None:
    response = strict.post(f"{URL}?a=b", json=an_event(), headers={"X-Request-ID": "r-1"})
    assert response.status_code == 401
    assert list(json.loads(response.data).items()) == [
        ("statusCode", 401),
        ("error", "Unauthorized"),
        ("message", "Webhook signature is not valid"),
        ("path", URL),
        ("requestId", "r-1"),
    ]
    assert receipts.committed == {}


@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name in ("id", "timestamp", "signature") for value in (None, "")),
        *({"id": "f7765069-6477-4c9b-b348-0f242ede42cb"}, {"id": "\xe9"}),
        *({"timestamp": value} for value in ("now", "1e9", "-1", "9" * 50, "\xb2", "\xe9")),
        *({"signature": value} for value in ("v1", "v1,", ",", "\xe9", "v1,\xe9", "v2,x")),
        {"signature": " ".join(f"v1,{n}" for n in range(1_000))},
        *({"secret": OTHER}, {"off_s": TOLERANCE_S + 2}, {"off_s": -TOLERANCE_S - 2}),
    ],
)
def test_a_header_that_is_missing_wrong_or_old_is_refused(
    strict: FlaskClient, receipts: InMemoryReceipts, changes: dict[str, Any]
) -> None:
    assert post_signed(strict, BODY, **changes).status_code == 401
    assert receipts.committed == {}


@pytest.mark.parametrize(
    ("signed", "sent"),
    [(b"%b", b"%b "), (b"%b", b"\n%b"), (b"%b ", b"%b"), (b"%b", b"\xef\xbb\xbf%b")],
)
def test_the_exact_bytes_are_what_is_signed(
    strict: FlaskClient, signed: bytes, sent: bytes
) -> None:
    assert post_signed(strict, sent % BODY, signed_body=signed % BODY).status_code == 401
    assert post_signed(strict, sent % BODY).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{}", b'{"eventId":"x"}', b'{"surprise":1}'])
def test_it_is_checked_before_the_fields_are_looked_at(strict: FlaskClient, body: bytes) -> None:
    assert post_signed(strict, body, secret=OTHER).status_code == 401
    assert post_signed(strict, body).status_code == 400


@pytest.mark.parametrize("signature", [None, "nonsense", f"v1,{b64encode(b'x').decode()}"])
def test_without_a_secret_no_header_is_looked_at(
    receiver: FlaskClient, signature: str | None
) -> None:
    assert post_signed(receiver, BODY, signature=signature).status_code == 200
