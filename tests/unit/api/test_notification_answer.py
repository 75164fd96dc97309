"""What ``POST /notifications`` and ``GET /notifications/{id}`` answer."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from notify_queue.domain.lifecycle import Status
from tests.unit.api.in_memory import NOW, InMemoryQueue, post, valid_body

KEYS = [
    "id",
    "idempotencyKey",
    "recipient",
    "channel",
    "priority",
    "status",
    "scheduledAt",
    "nextAttemptAt",
    "attemptCount",
    "maxAttempts",
    "lastError",
    "sentAt",
    "failedAt",
    "deadLetteredAt",
    "cancelledAt",
    "redriveCount",
    "lastRedrivenAt",
    "createdAt",
    "updatedAt",
]


def schedule(client: FlaskClient) -> str:
    """Schedule a notification and return its id."""
    response = post(client, valid_body())
    assert response.json is not None
    found: str = response.json["id"]
    return found


def test_a_new_notification_is_created(client: FlaskClient, queue: InMemoryQueue) -> None:
    response = client.post("/notifications", json=valid_body())

    (job_id,) = queue.jobs
    assert response.status_code == 201
    assert response.headers["Idempotent-Replayed"] == "false"
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert list(json.loads(response.data).items()) == [
        ("id", str(job_id)),
        ("idempotencyKey", "order-1"),
        ("recipient", "ada@example.com"),
        ("channel", "EMAIL"),
        ("priority", "NORMAL"),
        ("status", "PENDING"),
        ("scheduledAt", "2026-03-01T12:01:00.123Z"),
        ("nextAttemptAt", "2026-03-01T12:01:00.123Z"),
        ("attemptCount", 0),
        ("maxAttempts", 6),
        ("lastError", None),
        ("sentAt", None),
        ("failedAt", None),
        ("deadLetteredAt", None),
        ("cancelledAt", None),
        ("redriveCount", 0),
        ("lastRedrivenAt", None),
        ("createdAt", "2026-03-01T12:00:00.123Z"),
        ("updatedAt", "2026-03-01T12:00:00.123Z"),
    ]


def test_a_repeated_request_is_replayed(client: FlaskClient, queue: InMemoryQueue) -> None:
    first = client.post("/notifications", json=valid_body())
    again = post(client, dict(reversed(valid_body(delaySeconds=60.0).items())))

    assert again.status_code == 200
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json == first.json
    assert len(queue.jobs) == 1


def test_a_reused_key_is_a_conflict(client: FlaskClient) -> None:
    client.post("/notifications", json=valid_body())

    response = client.post("/notifications", json=valid_body(priority="LOW"))

    assert response.status_code == 409
    assert response.json is not None
    assert response.json["error"] == "Conflict"
    assert response.json["message"] == (
        'Idempotency key "order-1" was already used for a different notification request'
    )


def test_a_notification_is_read_as_it_is_now(client: FlaskClient, queue: InMemoryQueue) -> None:
    job_id = UUID(schedule(client))
    # Another zone, and microseconds that rounding would carry over.
    elsewhere = timezone(timedelta(hours=5, minutes=30))
    sent_at = datetime(2026, 3, 1, 18, 0, 59, 999_999, tzinfo=elsewhere)
    queue.jobs[job_id] = replace(
        queue.jobs[job_id], status=Status.SENT, next_attempt_at=None, sent_at=sent_at
    )

    response = client.get(f"/notifications/{job_id}")

    assert response.status_code == 200
    assert response.json is not None
    assert list(json.loads(response.data)) == KEYS
    assert response.json["status"] == "SENT"
    assert response.json["nextAttemptAt"] is None
    assert response.json["sentAt"] == "2026-03-01T12:30:59.999Z"


def test_a_whole_second_has_three_fraction_digits(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    job_id = UUID(schedule(client))
    queue.jobs[job_id] = replace(queue.jobs[job_id], created_at=NOW.replace(microsecond=0))

    response = client.get(f"/notifications/{job_id}")

    assert response.json is not None
    assert response.json["createdAt"] == "2026-03-01T12:00:00.000Z"


def test_an_id_matches_in_any_case_and_encoding(client: FlaskClient) -> None:
    job_id = schedule(client)
    encoded = job_id.replace("-", "%2D")

    assert client.get(f"/notifications/{job_id.upper()}").status_code == 200
    assert client.get("/", environ_overrides=raw(f"/notifications/{encoded}")).status_code == 200


def raw(target: str) -> dict[str, str]:
    """Send exactly this request target."""
    return {"RAW_URI": target}


@pytest.mark.parametrize(
    "job_id",
    [
        str(uuid4()).upper(),
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        *(f"01890000-0000-{version}000-8000-000000000000" for version in range(1, 9)),
        *(f"01890000-0000-7000-{variant}000-000000000000" for variant in "89abAB"),
    ],
)
def test_an_unknown_id_is_named_as_it_was_given(client: FlaskClient, job_id: str) -> None:
    response = client.get(f"/notifications/{job_id}")

    assert response.status_code == 404
    assert response.json is not None
    assert response.json["error"] == "Not Found"
    assert response.json["message"] == f"Notification {job_id} not found"


@pytest.mark.parametrize(
    "job_id",
    [
        "1",
        "alice@example.com",
        "01890000-0000-0000-8000-000000000000",
        "01890000-0000-9000-8000-000000000000",
        "01890000-0000-7000-7000-000000000000",
        "01890000-0000-7000-c000-000000000000",
        "01890000000070008000000000000000",
        "{01890000-0000-7000-8000-000000000000}",
        "urn:uuid:01890000-0000-7000-8000-000000000000",
        "01890000-0000-7000-8000-000000000000%0A",
        "0189000%D9%A0-0000-7000-8000-000000000000",
        "%00",
        "a%2Fb",
    ],
)
def test_anything_but_a_uuid_is_refused(client: FlaskClient, job_id: str) -> None:
    response = client.get("/", environ_overrides=raw(f"/notifications/{job_id}"))

    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "Validation failed (uuid is expected)"
    assert "details" not in response.json


@pytest.mark.parametrize("segment", ["%", "%zz", "%E0%A4", "a%f", "%ff", "%ED%A0%80"])
def test_an_id_that_cannot_be_decoded_is_refused_in_its_own_words(
    client: FlaskClient, segment: str
) -> None:
    response = client.get("/", environ_overrides=raw(f"/notifications/{segment}"))

    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == f"Failed to decode param '{segment}'"
    assert response.json["path"] == f"/notifications/{segment}"
