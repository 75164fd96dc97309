"""What may stand in a line: known fields of known events, and nothing else."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import pytest

from notify_queue.domain.schedule import spell_instant
from notify_queue.observability import events
from notify_queue.observability.fields import MAX_TEXT
from notify_queue.observability.logs import get_logger
from tests.unit.observability.conftest import Lines

MARKER = "alice@example.com"
PRIVATE: dict[str, Any] = {
    "recipient": MARKER,
    "payload": {"to": MARKER},
    "idempotencyKey": MARKER,
    "body": MARKER,
    "headers": {"authorization": MARKER},
    "parameters": [MARKER],
    "exc_info": ValueError(MARKER),
    "stack_info": MARKER,
}

EVENTS = [
    value
    for name, value in vars(events).items()
    if name.isupper() and isinstance(value, str) and not name.startswith("_")
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_writes_its_fields_and_drops_planted_ones(event: str, lines: Lines) -> None:
    allowed: dict[str, Any] = dict.fromkeys(events.FIELDS[event], 7)
    get_logger("test").error(event, **allowed, **PRIVATE)
    assert MARKER not in lines.text
    assert set(lines.only) >= set(allowed)


def test_every_event_has_its_list_of_fields() -> None:
    assert sorted(EVENTS) == sorted(events.FIELDS)
    assert len(EVENTS) == len(set(EVENTS))


def test_an_event_nobody_declared_is_written_without_any_field(lines: Lines) -> None:
    get_logger("test").info("job.unheard_of", jobId=1, recipient=MARKER)
    assert lines.only["msg"] == "job.unheard_of"
    assert "jobId" not in lines.only


@pytest.mark.parametrize(
    "value",
    [ValueError(MARKER), {"text": MARKER}, [MARKER], (MARKER,), MARKER.encode(), object(), None],
)
def test_a_value_that_is_no_identifier_and_no_number_is_dropped(value: Any, lines: Lines) -> None:
    get_logger("test").info(events.JOB_SENT, workerId=value, attempt=1)
    assert "workerId" not in lines.only
    assert lines.only["attempt"] == 1
    assert MARKER not in lines.text


def test_an_object_keeps_only_its_known_parts(lines: Lines) -> None:
    error = {"name": "UniqueViolation", "code": "23505", "constraint": None, "detail": MARKER}
    get_logger("test").error(events.WORKER_POLL_FAILED, error=error)
    assert lines.only["error"] == {"name": "UniqueViolation", "code": "23505", "constraint": None}


def test_the_stack_stands_beside_the_error(lines: Lines) -> None:
    error = {"name": "KeyError", "stack": ["a.py:1 run", "b.py:2 step"]}
    get_logger("test").error(events.WORKER_POLL_FAILED, error=error)
    assert lines.only["error"] == {"name": "KeyError"}
    assert lines.only["stack"] == ["a.py:1 run", "b.py:2 step"]
    assert error["stack"]


def test_identifiers_numbers_and_truths_are_written_as_they_are(lines: Lines) -> None:
    job = uuid4()
    get_logger("test").info(events.JOB_SENT, jobId=job, duplicate=False, durationMs=1.5)
    record = lines.only
    assert (record["jobId"], record["duplicate"], record["durationMs"]) == (str(job), False, 1.5)


def test_a_megabyte_of_text_is_cut(lines: Lines) -> None:
    get_logger("test").warn(events.JOB_FAIL, error="x" * 1_000_000)
    assert lines.only["error"] == "x" * MAX_TEXT


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00.000Z"),
        (datetime(2026, 3, 1, 12, 0, 0, 45_999, tzinfo=UTC), "2026-03-01T12:00:00.045Z"),
        (
            datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))),
            "2026-02-28T19:45:00.000Z",
        ),
    ],
)
def test_an_instant_is_written_in_utc_with_three_digits_of_a_second(
    moment: datetime, written: str
) -> None:
    assert spell_instant(moment) == written
