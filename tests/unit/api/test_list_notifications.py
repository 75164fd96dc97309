"""``GET /notifications``: what may be asked for, and what is shown."""

import json
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.page import Filter, encode_cursor, place_of
from tests.unit.api.in_memory import CURSOR_KEY, NOW, InMemoryQueue

NOT_A_STATUS = (
    "status must be one of the following values: "
    "PENDING, PROCESSING, SENT, FAILED, DEAD_LETTERED, CANCELLED"
)
TOO_GREAT = "limit must not be greater than 100"
TOO_SMALL = "limit must not be less than 1"
NOT_INTEGER = "limit must be an integer number"
LONG_RECIPIENT = "recipient must be shorter than or equal to 320 characters"
LONG_CURSOR = "cursor must be shorter than or equal to 512 characters"
BAD_CURSOR = "cursor is not valid; use the nextCursor from a previous page"


def listed(client: FlaskClient, query: str = "") -> dict[str, Any]:
    """Ask for a page and return it."""
    response = client.get(f"/notifications{query}")
    assert response.status_code == 200, response.json
    page: dict[str, Any] = json.loads(response.data)
    return page


def details(client: FlaskClient, query: str) -> list[dict[str, Any]]:
    """Ask with a query that breaks rules and return which."""
    response = client.get(f"/notifications?{query}")
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["error"] == "Bad Request"
    assert response.json["message"] == "Validation failed"
    assert response.json["path"] == "/notifications"
    found: list[dict[str, Any]] = response.json["details"]
    return found


def ids(page: dict[str, Any]) -> list[str]:
    """Return the ids on a page."""
    return [item["id"] for item in page["items"]]


class TestPages:
    """What is shown, and in what order."""

    def test_an_empty_queue_is_one_empty_page(self, client: FlaskClient) -> None:
        assert list(listed(client).items()) == [("items", []), ("nextCursor", None)]

    def test_an_item_is_what_reading_it_shows(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        job = queue.add(status=Status.SENT, sent_at=NOW, next_attempt_at=None)

        (item,) = listed(client)["items"]

        shown = json.loads(client.get(f"/notifications/{job.id}").data)
        assert list(item.items()) == list(shown.items())

    def test_pages_lead_from_the_newest_to_the_oldest_and_show_each_once(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        for age in (2, 0, 1, 1, 1):
            queue.add(created_at=NOW - timedelta(microseconds=age))
        expected = sorted(queue.jobs.values(), key=lambda job: (job.created_at, job.id))

        shown, query = [], "?limit=2"
        for _ in range(3):
            page = listed(client, query)
            shown += ids(page)
            query = f"?limit=2&cursor={page['nextCursor']}"

        assert page["nextCursor"] is None
        assert shown == [str(job.id) for job in reversed(expected)]

    def test_a_full_last_page_has_no_cursor(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        queue.add()
        queue.add()

        assert listed(client, "?limit=2")["nextCursor"] is None

    def test_filters_are_exact_and_go_together(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        wanted = queue.add(recipient="a+b é@example.com", status=Status.FAILED)
        queue.add(recipient="a+b é@example.com")
        queue.add(status=Status.FAILED)
        recipient = quote("a+b é@example.com")

        assert ids(listed(client, f"?status=FAILED&recipient={recipient}")) == [str(wanted.id)]
        assert len(ids(listed(client, "?status=FAILED"))) == 2
        assert len(ids(listed(client, f"?recipient={recipient}"))) == 2
        assert ids(listed(client, "?recipient=a%2Bb+%C3%A9@example.co")) == []

    def test_head_answers_without_a_body(self, client: FlaskClient, queue: InMemoryQueue) -> None:
        queue.add()
        response = client.head("/notifications?limit=1")

        assert response.status_code == 200
        assert response.data == b""
        assert response.headers["Content-Length"] == str(len(client.get("/notifications").data))
        assert client.head("/notifications?limit=0").status_code == 400


class TestWhatReachesTheUseCase:
    """Absent parameters have their defaults."""

    def test_nothing_said_is_the_first_page_of_twenty(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        listed(client)

        assert queue.listings == [(Filter(), 20, None)]

    @pytest.mark.parametrize("status", list(Status))
    def test_all_that_is_said(
        self, client: FlaskClient, queue: InMemoryQueue, status: Status
    ) -> None:
        cursor = encode_cursor(place_of(queue.add()), CURSOR_KEY)

        listed(client, f"?cursor={cursor}&recipient=a%20b+c&limit=7&status={status}")

        assert queue.listings == [(Filter(status, "a b c"), 7, cursor)]

    @pytest.mark.parametrize(
        ("text", "limit"),
        [
            ("1", 1),
            ("100", 100),
            ("0x10", 16),
            ("0b11", 3),
            ("1e1", 10),
            ("5.0", 5),
            ("%205", 5),
            ("+5", 5),
            ("%2B5", 5),
        ],
    )
    def test_a_limit_is_read_as_javascript_reads_numbers(
        self, client: FlaskClient, queue: InMemoryQueue, text: str, limit: int
    ) -> None:
        listed(client, f"?limit={text}")

        ((_, given, _),) = queue.listings
        assert given == limit
        assert type(given) is int

    def test_a_json_body_is_passed_over(self, client: FlaskClient, queue: InMemoryQueue) -> None:
        assert client.get("/notifications", json={"limit": 0}).status_code == 200
        assert queue.listings == [(Filter(), 20, None)]


class TestRules:
    """Every text, every order."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", [TOO_SMALL]),
            ("%20", [TOO_SMALL]),
            ("0", [TOO_SMALL]),
            ("-1", [TOO_SMALL]),
            ("101", [TOO_GREAT]),
            ("1e9", [TOO_GREAT]),
            ("0x" + "f" * 400, [TOO_GREAT]),
            ("1.5", [NOT_INTEGER]),
            ("0.5", [TOO_SMALL, NOT_INTEGER]),
            ("100.5", [TOO_GREAT, NOT_INTEGER]),
            ("Infinity", [TOO_GREAT, NOT_INTEGER]),
            ("-Infinity", [TOO_SMALL, NOT_INTEGER]),
            ("abc", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
            ("nan", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
            ("1_0", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
            ("%D9%A3", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
            ("5&limit=5", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        ],
    )
    def test_a_wrong_limit_breaks_every_rule_it_does_not_keep(
        self, client: FlaskClient, text: str, expected: list[str]
    ) -> None:
        assert details(client, f"limit={text}") == [{"field": "limit", "errors": expected}]

    @pytest.mark.parametrize(
        "query",
        ["status=", "status", "status=sent", "status=SENT%20", "status=QUEUED", "status=SENT%00"],
    )
    def test_a_status_is_one_of_six_words(self, client: FlaskClient, query: str) -> None:
        assert details(client, query) == [{"field": "status", "errors": [NOT_A_STATUS]}]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("recipient=", ["recipient should not be empty"]),
            ("recipient=" + "x" * 321, [LONG_RECIPIENT]),
            ("recipient=a%00b", [r"recipient must not contain NUL (\u0000) characters"]),
            ("recipient=a%0Ab", ["recipient must not contain control characters"]),
        ],
    )
    def test_a_recipient_has_the_rules_it_was_scheduled_under(
        self, client: FlaskClient, query: str, expected: list[str]
    ) -> None:
        assert details(client, query) == [{"field": "recipient", "errors": expected}]

    def test_a_recipient_of_full_length_is_fine(self, client: FlaskClient) -> None:
        assert listed(client, "?recipient=" + quote("é" * 320))["items"] == []

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("status", "SENT", [NOT_A_STATUS]),
            ("recipient", "a", [LONG_RECIPIENT, "recipient must be a string"]),
            ("cursor", "a", [LONG_CURSOR, "cursor must be a string"]),
            ("recipient", "", [LONG_RECIPIENT, "recipient must be a string"]),
            ("cursor", "", [LONG_CURSOR, "cursor must be a string"]),
        ],
    )
    def test_a_repeated_parameter_is_a_list_and_fails_as_one(
        self, client: FlaskClient, name: str, value: str, expected: list[str]
    ) -> None:
        found = details(client, f"{name}={value}&{name}={value}")

        assert found == [{"field": name, "errors": expected}]

    def test_unknown_parameters_come_first_and_in_the_order_of_the_query(
        self, client: FlaskClient
    ) -> None:
        query = "z=1&limit=0&recipient[]=a&Status=SENT&cursor=&recipient%5Ba%5D=a&z=2&status=&=1"

        found = details(client, query)

        unknown = ["z", "recipient[]", "Status", "recipient[a]", ""]
        assert found == [
            {"field": name, "errors": [f"property {name} should not exist"]} for name in unknown
        ] + [
            {"field": "status", "errors": [NOT_A_STATUS]},
            {"field": "limit", "errors": [TOO_SMALL]},
        ]

    def test_fields_come_in_their_own_order(self, client: FlaskClient) -> None:
        found = details(client, f"cursor={'x' * 513}&limit=&recipient=&status=")

        assert [entry["field"] for entry in found] == ["status", "recipient", "limit", "cursor"]

    def test_nothing_that_breaks_a_rule_reaches_the_use_case(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        details(client, "limit=0")
        details(client, "nothing")

        assert not queue.listings


def encoded(value: object) -> str:
    """Write any JSON as a cursor might be written."""
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class TestCursors:
    """A cursor is believed only if a page came with it."""

    @pytest.mark.parametrize(
        "cursor",
        [
            "",
            "x",
            "%00",
            "%FF",
            "é",
            "x" * 512,
            encoded("x"),
            encoded({}),
            encoded([]),
            encoded(["2026-03-01T12:00:00Z", "not-an-id"]),
            encoded(["1", "01890000-0000-7000-8000-000000000000"]),
            encode_cursor(place_of(InMemoryQueue().add()), b"another key"),
        ],
    )
    def test_any_other_text_is_refused_without_details(
        self, client: FlaskClient, cursor: str
    ) -> None:
        response = client.get(f"/notifications?cursor={cursor}")

        assert response.status_code == 400
        assert response.json is not None
        assert response.json["error"] == "Bad Request"
        assert response.json["message"] == BAD_CURSOR
        assert "details" not in response.json

    @pytest.mark.parametrize("length", [513, 3_000])
    def test_one_that_is_too_long_breaks_a_rule(self, client: FlaskClient, length: int) -> None:
        found = details(client, "cursor=" + "x" * length)

        assert found == [{"field": "cursor", "errors": [LONG_CURSOR]}]

    def test_it_is_not_tied_to_the_filters_it_came_with(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        old = queue.add(created_at=NOW - timedelta(days=1), status=Status.SENT)
        queue.add()
        cursor = listed(client, "?limit=1")["nextCursor"]

        assert ids(listed(client, f"?status=SENT&cursor={cursor}")) == [str(old.id)]
