"""``POST /notifications/retry``: which jobs, how many, and the answer."""

import json
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.redrive import Selection
from tests.unit.api.in_memory import NOW, InMemoryQueue

URL = "/notifications/retry"
NOT_A_STATUS = "status must be one of the following values: DEAD_LETTERED, FAILED"
LONG_RECIPIENT = "recipient must be shorter than or equal to 320 characters"
TOO_GREAT = "limit must not be greater than 1000"
TOO_SMALL = "limit must not be less than 1"
NOT_INTEGER = "limit must be an integer number"


def details(client: FlaskClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Post a body that breaks rules and return which."""
    content = json.dumps(body)
    response = client.post(URL, data=content, content_type="application/json")
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "Validation failed"
    found: list[dict[str, Any]] = response.json["details"]
    return found


def test_the_oldest_are_put_back_and_the_rest_is_counted(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    ages = [1, 3, 2]
    jobs = [
        queue.add(status=Status.DEAD_LETTERED, created_at=NOW - timedelta(days=age)) for age in ages
    ]
    queue.add(status=Status.FAILED)

    response = client.post(URL, json={"limit": 2})

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json; charset=utf-8"
    assert response.data == b'{"retried":2,"remaining":1}'
    assert [queue.jobs[job.id].status for job in jobs] == [
        Status.DEAD_LETTERED,
        Status.PENDING,
        Status.PENDING,
    ]


def test_only_what_is_selected_is_put_back(client: FlaskClient, queue: InMemoryQueue) -> None:
    wanted = queue.add(status=Status.FAILED, recipient="b@example.com")
    queue.add(status=Status.FAILED)
    queue.add(status=Status.DEAD_LETTERED, recipient="b@example.com")

    response = client.post(URL, json={"status": "FAILED", "recipient": "b@example.com"})

    assert response.json == {"retried": 1, "remaining": 0}
    assert [job for job in queue.jobs.values() if job.redrive_count] == [queue.jobs[wanted.id]]


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"status": None, "recipient": None, "limit": None},
        {"status": "DEAD_LETTERED", "limit": 100},
    ],
)
def test_null_and_absence_are_the_defaults(
    client: FlaskClient, queue: InMemoryQueue, body: dict[str, Any] | None
) -> None:
    response = client.post(URL) if body is None else client.post(URL, json=body)

    assert response.status_code == 200
    assert queue.redrives == [(Selection(Status.DEAD_LETTERED), 100)]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_an_empty_body_of_any_type_has_the_defaults(
    client: FlaskClient, queue: InMemoryQueue, content_type: str
) -> None:
    assert client.post(URL, data=b"", content_type=content_type).status_code == 200
    assert queue.redrives == [(Selection(Status.DEAD_LETTERED), 100)]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_is_not_called_json_redrives_nothing(
    client: FlaskClient, queue: InMemoryQueue, content_type: str
) -> None:
    content = b'{"status":"FAILED","limit":1}'

    response = client.post(URL, data=content, content_type=content_type)

    assert response.status_code == 415
    assert not queue.redrives


@pytest.mark.parametrize("content", [b"[]", b"null", b"5", b'"x"', b" ", b"{"])
def test_a_body_that_is_no_object_redrives_nothing(
    client: FlaskClient, queue: InMemoryQueue, content: bytes
) -> None:
    response = client.post(URL, data=content, content_type="application/json")

    assert response.status_code == 400
    assert not queue.redrives


@pytest.mark.parametrize("limit", [1, 7.0, 1000])
def test_all_that_is_said_reaches_the_use_case(
    client: FlaskClient, queue: InMemoryQueue, limit: float
) -> None:
    client.post(URL, json={"limit": limit, "recipient": " é ", "status": "FAILED"})

    assert queue.redrives == [(Selection(Status.FAILED, " é "), limit)]
    assert type(queue.redrives[0][1]) is int


@pytest.mark.parametrize("status", ["", "failed", "PENDING", "CANCELLED", 5, True, ["FAILED"], {}])
def test_a_status_is_one_of_two_words(client: FlaskClient, status: object) -> None:
    assert details(client, {"status": status}) == [{"field": "status", "errors": [NOT_A_STATUS]}]


@pytest.mark.parametrize(
    ("recipient", "expected"),
    [
        ("", ["recipient should not be empty"]),
        ("x" * 321, [LONG_RECIPIENT]),
        ("\0", [r"recipient must not contain NUL (\u0000) characters"]),
        ("a\n", ["recipient must not contain control characters"]),
        (5, [LONG_RECIPIENT, "recipient must be a string"]),
        (False, [LONG_RECIPIENT, "recipient must be a string"]),
        (["a"], [LONG_RECIPIENT, "recipient must be a string"]),
        ({}, [LONG_RECIPIENT, "recipient must be a string"]),
    ],
)
def test_a_recipient_has_the_rules_it_was_scheduled_under(
    client: FlaskClient, recipient: object, expected: list[str]
) -> None:
    found = details(client, {"recipient": recipient})

    assert found == [{"field": "recipient", "errors": expected}]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, [TOO_SMALL]),
        (-1, [TOO_SMALL]),
        (1001, [TOO_GREAT]),
        (1.5, [NOT_INTEGER]),
        ("5", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        ("", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        (True, [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        ([], [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
    ],
)
def test_a_limit_is_never_made_of_a_text(
    client: FlaskClient, limit: object, expected: list[str]
) -> None:
    assert details(client, {"limit": limit}) == [{"field": "limit", "errors": expected}]


def test_unknown_properties_come_first_then_the_fields_in_their_order(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    found = details(client, {"limit": 0, "since": 1, "recipient": "", "cursor": 1, "status": ""})

    fields = ["since", "cursor", "status", "recipient", "limit"]
    assert [entry["field"] for entry in found] == fields
    assert found[0]["errors"] == ["property since should not exist"]
    assert not queue.redrives


def test_a_filter_in_the_query_is_refused_and_redrives_nothing(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    """Passed over, it would redrive what nobody asked for."""
    queue.add(status=Status.DEAD_LETTERED)
    response = client.post(f"{URL}?status=FAILED")
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["details"] == [
        {"field": "status", "errors": ["property status should not exist"]}
    ]
    assert queue.redrives == []
