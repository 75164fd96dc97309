"""What an event can never be is refused by the database."""

import pytest
from sqlalchemy.exc import IntegrityError

from tests.support.events import Events
from tests.support.jobs import Jobs


@pytest.mark.parametrize(
    ("assignments", "constraint"),
    [
        ("delivered_at = now(), failed_at = now()", "ck_webhook_events_end"),
        ("leased_until = now()", "ck_webhook_events_lease"),
        (
            "dispatch_attempts = 1, leased_until = now(), delivered_at = now()",
            "ck_webhook_events_lease",
        ),
        (
            "dispatch_attempts = 1, leased_until = now(), failed_at = now()",
            "ck_webhook_events_lease",
        ),
        ("status = 'CANCELLED'", "ck_webhook_events_status"),
        ("status = 'PENDING'", "ck_webhook_events_status"),
        ("attempt_count = -1", "ck_webhook_events_counts"),
        ("redrive_count = -1", "ck_webhook_events_counts"),
        ("forgiven_attempts = 1", "ck_webhook_events_counts"),
        ("forgiven_attempts = -1", "ck_webhook_events_counts"),
        ("job_id = gen_random_uuid()", "fk_webhook_events_job"),
    ],
)
def test_an_impossible_event_is_refused(events: Events, assignments: str, constraint: str) -> None:
    [event_id] = events.add()
    with pytest.raises(IntegrityError, match=constraint):
        events.change(event_id, assignments)


def test_a_generation_ends_once(jobs: Jobs, events: Events) -> None:
    events.add()
    again = (
        "INSERT INTO webhook_events (id, job_id, status, attempt_count, occurred_at, redrive_count)"
        " SELECT gen_random_uuid(), job_id, 'FAILED', 1, now(), {} FROM webhook_events"
    )
    with pytest.raises(IntegrityError, match="uq_webhook_events_job_generation"):
        jobs.run(again.format(0))
    jobs.run(again.format(1))


def test_an_id_is_of_one_event(events: Events) -> None:
    [event_id, another] = events.add(2)
    with pytest.raises(IntegrityError, match="pk_webhook_events"):
        events.change(event_id, f"id = '{another}'")


def test_an_event_goes_with_its_job(jobs: Jobs, events: Events) -> None:
    events.add()
    jobs.run("DELETE FROM notification_jobs")
    assert events.count("true") == 0
