"""``POST /webhooks/mock``: what it takes for an event of ours, and what it answers."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.unit.api.in_memory import InMemoryQueue
from tests.unit.api.mock_receiver import EVENT_ID, URL, InMemoryReceipts, an_event, use_cases

NOT_A_UUID = "must be a UUID"
NOT_A_STATUS = "status must be one of the following values: SENT, FAILED, DEAD_LETTERED"
NOT_A_DATE = "timestamp must be a valid ISO 8601 date string"
BELOW_ZERO = "must not be less than 0"
NO_INTEGER = "must be an integer number"

Logged = Callable[[], list[dict[str, Any]]]


def details(response: TestResponse) -> list[dict[str, Any]]:
    """Check that the event was refused for its fields and return which."""
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "Validation failed"
    found: list[dict[str, Any]] = response.json["details"]
    return found


class TestReceipt:
    """What is answered."""

    def test_the_first_time_it_is_counted(
        self, receiver: FlaskClient, receipts: InMemoryReceipts
    ) -> None:
        response = receiver.post(URL, json=an_event())
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert response.data == (
            b'{"eventId":"%b","duplicate":false,"receivedCount":1}' % EVENT_ID.encode()
        )
        assert receipts.committed == {UUID(EVENT_ID): 1}

    def test_every_further_time_is_a_duplicate(self, receiver: FlaskClient) -> None:
        answers = [receiver.post(URL, json=an_event()).json for _ in range(3)]
        receiver.post(URL, json=an_event(eventId="f7765069-6477-4c9b-b348-0f242ede42cb"))
        answers.append(receiver.post(URL, json=an_event(eventId=EVENT_ID.upper())).json)
        assert answers == [
            {"eventId": EVENT_ID, "duplicate": count > 1, "receivedCount": count}
            for count in (1, 2, 3, 4)
        ]

    def test_the_log_tells_a_first_receipt_from_a_duplicate(
        self, receiver: FlaskClient, log_lines: Logged
    ) -> None:
        for _ in range(2):
            receiver.post(URL, json=an_event())
        told = [line for line in log_lines() if line.get("eventId") == EVENT_ID]
        assert [(line["level"], line["msg"], line["status"]) for line in told] == [
            (30, "webhook.received", "SENT"),
            (30, "webhook.duplicate_ignored", "SENT"),
        ]
        assert {line["jobId"] for line in told} == {an_event()["jobId"]}

    @pytest.mark.parametrize("path", ["/Webhooks/MOCK", "/webhooks/mock/"])
    def test_the_path_matches_as_all_others_do(self, receiver: FlaskClient, path: str) -> None:
        assert receiver.post(path, json=an_event()).status_code == 200

    def test_another_method_is_named_wrong(self, receiver: FlaskClient) -> None:
        response = receiver.get(URL)
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")


class TestFields:
    """What an event must have."""

    @pytest.mark.parametrize(
        "changes",
        [
            *({"redriveCount": value} for value in (..., None, 0, 1.0, 7)),
            *({"status": value} for value in ("SENT", "FAILED", "DEAD_LETTERED")),
            *({"attemptCount": value} for value in (0, 6.0, 10**9)),
            *(
                {"timestamp": value}
                for value in ("2026-03-01", "2026-03-01T12:00", "2026-03-01T12:00:00.123+01:00")
            ),
        ],
    )
    def test_what_is_well_formed_is_taken(
        self, receiver: FlaskClient, changes: dict[str, Any]
    ) -> None:
        assert receiver.post(URL, json=an_event(**changes)).status_code == 200

    def test_everything_but_the_generation_is_required(
        self, receiver: FlaskClient, receipts: InMemoryReceipts
    ) -> None:
        assert details(receiver.post(URL, json={})) == [
            {"field": "eventId", "errors": [f"eventId {NOT_A_UUID}"]},
            {"field": "jobId", "errors": [f"jobId {NOT_A_UUID}"]},
            {"field": "status", "errors": [NOT_A_STATUS]},
            {
                "field": "attemptCount",
                "errors": [f"attemptCount {BELOW_ZERO}", f"attemptCount {NO_INTEGER}"],
            },
            {"field": "timestamp", "errors": [NOT_A_DATE]},
        ]
        assert receipts.committed == {}

    @pytest.mark.parametrize("name", ["eventId", "jobId"])
    @pytest.mark.parametrize(
        "value", [None, 5, True, [], "", "x", EVENT_ID[:-1], f"{{{EVENT_ID}}}", f" {EVENT_ID}"]
    )
    def test_an_id_is_a_uuid(self, receiver: FlaskClient, name: str, value: object) -> None:
        found = details(receiver.post(URL, json=an_event(**{name: value})))
        assert found == [{"field": name, "errors": [f"{name} {NOT_A_UUID}"]}]

    @pytest.mark.parametrize("value", [None, "", "sent", "PENDING", "CANCELLED", 5, ["SENT"]])
    def test_a_status_is_one_of_the_endings(self, receiver: FlaskClient, value: object) -> None:
        found = details(receiver.post(URL, json=an_event(status=value)))
        assert found == [{"field": "status", "errors": [NOT_A_STATUS]}]

    @pytest.mark.parametrize("name", ["attemptCount", "redriveCount"])
    @pytest.mark.parametrize(
        ("value", "rules"),
        [
            (-1, [BELOW_ZERO]),
            (0.5, [NO_INTEGER]),
            (-0.5, [BELOW_ZERO, NO_INTEGER]),
            ("1", [BELOW_ZERO, NO_INTEGER]),
            (True, [BELOW_ZERO, NO_INTEGER]),
            ([], [BELOW_ZERO, NO_INTEGER]),
        ],
    )
    def test_a_count_is_a_number_from_zero(
        self, receiver: FlaskClient, name: str, value: object, rules: list[str]
    ) -> None:
        found = details(receiver.post(URL, json=an_event(**{name: value})))
        assert found == [{"field": name, "errors": [f"{name} {rule}" for rule in rules]}]

    @pytest.mark.parametrize(
        "value",
        [None, "", "now", 5, True, "2026-02-30", "2026-03-01T25:00:00Z", "2026-03-01 12:00:00Z"],
    )
    def test_a_time_is_one_of_the_calendar(self, receiver: FlaskClient, value: object) -> None:
        found = details(receiver.post(URL, json=an_event(timestamp=value)))
        assert found == [{"field": "timestamp", "errors": [NOT_A_DATE]}]

    def test_what_is_not_known_is_refused_and_told_first(
        self, receiver: FlaskClient, receipts: InMemoryReceipts
    ) -> None:
        event = an_event(status="sent", payload={}, recipient=None)
        found = details(receiver.post(URL, json=event))
        assert sorted(entry["errors"][0] for entry in found[:2]) == [
            "property payload should not exist",
            "property recipient should not exist",
        ]
        assert found[2:] == [{"field": "status", "errors": [NOT_A_STATUS]}]
        assert receipts.committed == {}


def test_a_receiver_that_is_off_is_no_route(client: FlaskClient) -> None:
    response = client.post(URL, json=an_event())
    assert response.status_code == 404
    assert response.json is not None
    assert response.json["message"] == "Cannot POST /webhooks/mock"


def test_a_worker_has_none_even_if_it_is_on(
    queue: InMemoryQueue, receipts: InMemoryReceipts
) -> None:
    worker = queue.app("worker", use_cases(receipts)).test_client()
    assert worker.post(URL, json=an_event()).status_code == 404
    assert receipts.committed == {}
