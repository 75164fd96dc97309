"""The rules of ``POST /notifications``: every text, every order."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from notify_queue.domain.job import Channel, NotificationRequest, Priority
from tests.unit.api.in_memory import InMemoryQueue, post, valid_body

LIMITS = {"recipient": 320, "idempotencyKey": 255}
ONE_SCHEDULE = "Provide exactly one of sendAt or delaySeconds"
NOT_A_TIME = "sendAt must be a valid ISO 8601 date-time"
NO_OFFSET = "sendAt must include a timezone offset (Z or ±HH:MM)"
TOO_GREAT = "delaySeconds must not be greater than 31536000"
TOO_SMALL = "delaySeconds must not be less than 1"
NOT_INTEGER = "delaySeconds must be an integer number"


def details(client: FlaskClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Post a body that breaks rules and return which."""
    response = post(client, body)
    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "Validation failed"
    found: list[dict[str, Any]] = response.json["details"]
    return found


def errors(client: FlaskClient, field: str, value: object) -> list[str]:
    """Return the broken rules when one field has this value, and check that no other has any."""
    found = details(client, valid_body(**{field: value}))
    assert [entry["field"] for entry in found] == [field]
    texts: list[str] = found[0]["errors"]
    return texts


def accepted(client: FlaskClient, queue: InMemoryQueue, **changes: object) -> NotificationRequest:
    """Post a good body and return what reached the use case."""
    response = client.post("/notifications", json=valid_body(**changes))
    assert response.status_code == 201, response.json
    return queue.requests[-1]


def test_a_request_reaches_the_use_case_as_it_was_said(
    client: FlaskClient, queue: InMemoryQueue
) -> None:
    payload = {"__proto__": {"constructor": [1, 2.5, None]}, "escaped": "\\u0000", "é": "😀"}

    request = accepted(client, queue, payload=payload, channel="PUSH", priority="HIGH")

    assert request == NotificationRequest(
        recipient="ada@example.com",
        channel=Channel.PUSH,
        payload=payload,
        priority=Priority.HIGH,
        idempotency_key="order-1",
        delay_seconds=60,
    )


def test_an_empty_body_breaks_every_rule_of_every_required_field(client: FlaskClient) -> None:
    expected = [
        {
            "field": "recipient",
            "errors": [
                "recipient must be shorter than or equal to 320 characters",
                "recipient should not be empty",
                "recipient must be a string",
            ],
        },
        {
            "field": "channel",
            "errors": ["channel must be one of the following values: EMAIL, SMS, PUSH"],
        },
        {"field": "payload", "errors": ["payload must be an object"]},
        {"field": "sendAt", "errors": [ONE_SCHEDULE]},
        {
            "field": "priority",
            "errors": ["priority must be one of the following values: HIGH, NORMAL, LOW"],
        },
        {
            "field": "idempotencyKey",
            "errors": [
                "idempotencyKey must be shorter than or equal to 255 characters",
                "idempotencyKey should not be empty",
                "idempotencyKey must be a string",
            ],
        },
    ]

    assert details(client, {}) == expected


def test_unknown_properties_come_first_and_in_the_order_of_the_body(client: FlaskClient) -> None:
    found = details(
        client,
        {"zeta": 1, "priority": "no", "send_at": 2, "__proto__": {}, "channel": 1}
        | valid_body(channel="email", priority="no"),
    )

    assert [entry["field"] for entry in found] == [
        "zeta",
        "send_at",
        "__proto__",
        "channel",
        "priority",
    ]
    assert found[0]["errors"] == ["property zeta should not exist"]


@pytest.mark.parametrize("field", LIMITS)
class TestTextFields:
    """``recipient`` and ``idempotencyKey`` have the same rules."""

    def test_null_breaks_the_same_rules_as_absence(self, client: FlaskClient, field: str) -> None:
        assert errors(client, field, None) == errors(client, field, ...)
        assert len(errors(client, field, None)) == 3

    @pytest.mark.parametrize("value", [5, 0, True, False, [], {}, ["a"]])
    def test_another_type_breaks_the_length_and_the_string_rule(
        self, client: FlaskClient, field: str, value: object
    ) -> None:
        assert errors(client, field, value) == [
            f"{field} must be shorter than or equal to {LIMITS[field]} characters",
            f"{field} must be a string",
        ]

    def test_an_empty_text_is_refused(self, client: FlaskClient, field: str) -> None:
        assert errors(client, field, "") == [f"{field} should not be empty"]

    @pytest.mark.parametrize("character", ["x", "é", "😀", "\ufe0f"])
    def test_length_counts_code_points(
        self, client: FlaskClient, queue: InMemoryQueue, field: str, character: str
    ) -> None:
        accepted(client, queue, **{field: character * LIMITS[field]})

        assert errors(client, field, character * (LIMITS[field] + 1)) == [
            f"{field} must be shorter than or equal to {LIMITS[field]} characters"
        ]

    def test_nothing_is_trimmed(
        self, client: FlaskClient, queue: InMemoryQueue, field: str
    ) -> None:
        request = accepted(client, queue, **{field: "  "})

        assert "  " in {request.recipient, request.idempotency_key}

    def test_nul_has_a_text_of_its_own(self, client: FlaskClient, field: str) -> None:
        assert errors(client, field, "k\0") == [
            rf"{field} must not contain NUL (\u0000) characters"
        ]

    @pytest.mark.parametrize("character", ["\r\nBcc: b", "\n", "\r", "\t", "\x01", "\x7f", "\x85"])
    def test_control_characters_are_refused(
        self, client: FlaskClient, field: str, character: str
    ) -> None:
        value = f"a@example.com{character}"

        assert errors(client, field, value) == [f"{field} must not contain control characters"]

    def test_every_broken_rule_is_listed(self, client: FlaskClient, field: str) -> None:
        assert errors(client, field, "\0\n" * LIMITS[field]) == [
            f"{field} must not contain control characters",
            rf"{field} must not contain NUL (\u0000) characters",
            f"{field} must be shorter than or equal to {LIMITS[field]} characters",
        ]


@pytest.mark.parametrize("value", [..., None, "email", "FAX", "", 1, True, ["EMAIL"], {}])
def test_a_channel_is_one_of_three_words(client: FlaskClient, value: object) -> None:
    assert errors(client, "channel", value) == [
        "channel must be one of the following values: EMAIL, SMS, PUSH"
    ]


@pytest.mark.parametrize("value", [..., None, "high", "URGENT", 3, ["HIGH"], {}])
def test_a_priority_is_one_of_three_words_and_never_a_number(
    client: FlaskClient, value: object
) -> None:
    assert errors(client, "priority", value) == [
        "priority must be one of the following values: HIGH, NORMAL, LOW"
    ]


@pytest.mark.parametrize("value", [..., None, [], "x", 5, True])
def test_a_payload_is_an_object(client: FlaskClient, value: object) -> None:
    assert errors(client, "payload", value) == ["payload must be an object"]


def test_an_empty_payload_is_fine(client: FlaskClient, queue: InMemoryQueue) -> None:
    assert accepted(client, queue, payload={}).payload == {}


@pytest.mark.parametrize(
    "payload",
    [{"a": "\0"}, {"a\0": 1}, {"a": {"b\0c": "x"}}, {"a": [[{"b": ["x\0"]}]]}],
)
def test_nul_is_refused_in_a_payload_at_any_depth(client: FlaskClient, payload: object) -> None:
    assert errors(client, "payload", payload) == [
        r"payload must not contain NUL (\u0000) characters"
    ]


@pytest.mark.parametrize("value", [1, 60, 60.0, 31_536_000])
def test_a_delay_is_an_integer_however_it_is_written(
    client: FlaskClient, queue: InMemoryQueue, value: float
) -> None:
    delay = accepted(client, queue, delaySeconds=value).delay_seconds

    assert delay == value
    assert type(delay) is int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, [TOO_SMALL]),
        (-5, [TOO_SMALL]),
        (31_536_001, [TOO_GREAT]),
        (1e300, [TOO_GREAT]),
        (2**63 - 1, [TOO_GREAT]),
        (1.5, [NOT_INTEGER]),
        (0.5, [TOO_SMALL, NOT_INTEGER]),
        ("60", [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        (True, [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        (False, [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        ([], [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
        ({}, [TOO_GREAT, TOO_SMALL, NOT_INTEGER]),
    ],
)
def test_a_wrong_delay_breaks_every_rule_it_does_not_keep(
    client: FlaskClient, value: object, expected: list[str]
) -> None:
    assert errors(client, "delaySeconds", value) == expected


NOON = "2026-03-02T12:00:00Z"


@pytest.mark.parametrize(
    "schedule",
    [
        {},
        {"sendAt": NOON, "delaySeconds": 60},
        {"sendAt": None, "delaySeconds": 60},
        {"sendAt": NOON, "delaySeconds": None},
        {"sendAt": None, "delaySeconds": None},
        {"delaySeconds": None},
    ],
)
def test_exactly_one_schedule_field_may_stand_in_the_body(
    client: FlaskClient, schedule: dict[str, object]
) -> None:
    found = details(client, valid_body(delaySeconds=...) | schedule)

    assert found == [{"field": "sendAt", "errors": [ONE_SCHEDULE]}]


def test_a_wrong_delay_beside_a_time_is_told_too(client: FlaskClient) -> None:
    found = details(client, valid_body(sendAt=NOON, delaySeconds=0))

    assert found == [
        {"field": "sendAt", "errors": [ONE_SCHEDULE]},
        {"field": "delaySeconds", "errors": [TOO_SMALL]},
    ]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-02T08:00:00Z", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("2026-03-02T08:00Z", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("2026-03-02T09:30:00+01:30", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("2026-03-02T08:00:00-00:00", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("2026-03-02T08:00:00.123999999Z", datetime(2026, 3, 2, 8, 0, 0, 123_000, tzinfo=UTC)),
        ("2026-10-25T01:30:00+01:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("1999-12-31T23:59:59Z", datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_in_utc_and_cut_to_milliseconds(
    client: FlaskClient, queue: InMemoryQueue, text: str, instant: datetime
) -> None:
    request = accepted(client, queue, sendAt=text, delaySeconds=...)

    assert request.send_at == instant
    assert request.delay_seconds is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, NOT_A_TIME),
        (5, NOT_A_TIME),
        ("", NOT_A_TIME),
        ("tomorrow", NOT_A_TIME),
        ("2026-02-30T08:00:00Z", NOT_A_TIME),
        ("2026-03-02T08:00:60Z", NOT_A_TIME),
        ("2026-12-31T23:59:60Z", NOT_A_TIME),
        ("2026-12-31T15:59:60-08:00", NOT_A_TIME),
        ("2026-03-02T24:00:00Z", NOT_A_TIME),
        ("2026-03-02T24:00Z", NOT_A_TIME),
        ("2026-03-02T08:00:00+24:00", NOT_A_TIME),
        ("2026-03-02 08:00:00Z", NOT_A_TIME),
        ("2026-03-02t08:00:00Z", NOT_A_TIME),
        ("2026-W10-1T08:00:00Z", NOT_A_TIME),
        ("2026-061T08:00:00Z", NOT_A_TIME),
        ("20260302T080000Z", NOT_A_TIME),
        ("2026-03T08:00:00Z", NOT_A_TIME),
        ("2026-03-02T08Z", NOT_A_TIME),
        ("2026-03-02T08:00:00,5Z", NOT_A_TIME),
        ("+2026-03-02T08:00:00Z", NOT_A_TIME),
        ("2026-03-02T08:00:00Z\n", NOT_A_TIME),
        ("0001-01-01T00:00:00+14:00", NOT_A_TIME),
        ("2026-03-02", NO_OFFSET),
        ("2026-03-29T01:30:00", NO_OFFSET),
        ("2026-03-02T08:00:00z", NO_OFFSET),
        ("2026-03-02T08:00:00+0100", NO_OFFSET),
        ("2026-03-02T08:00:00+01", NO_OFFSET),
    ],
)
def test_anything_but_an_instant_breaks_one_rule(
    client: FlaskClient, value: object, expected: str
) -> None:
    found = details(client, valid_body(sendAt=value, delaySeconds=...))

    assert found == [{"field": "sendAt", "errors": [expected]}]


def test_a_time_beyond_the_horizon_is_refused_without_details(client: FlaskClient) -> None:
    body = valid_body(sendAt="2028-01-01T00:00:00Z", delaySeconds=...)

    response = client.post("/notifications", json=body)

    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "sendAt must be within 365 days from now"
    assert "details" not in response.json
