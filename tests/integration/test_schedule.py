"""Scheduling: once per key, told apart by what the caller said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from notify_queue.domain.errors import KeyReusedError, NotFoundError, ScheduleTooFarError
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.notifications.read import ReadNotification
from notify_queue.notifications.schedule import ScheduleNotification
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs, a_request

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Hints(list[float]):
    """Remembers what it was told."""

    def __call__(self, due_in_s: float) -> None:
        self.append(due_in_s)


@pytest.fixture
def hints() -> Hints:
    return Hints()


@pytest.fixture
def schedule(unit_of_work: UnitOfWorkFactory, hints: Hints) -> ScheduleNotification:
    return ScheduleNotification(
        unit_of_work, new_id, wall_clock=lambda: NOW, hint=hints, max_attempts=4
    )


def test_a_new_request_makes_a_job_and_a_hint(
    schedule: ScheduleNotification, jobs: Jobs, hints: Hints
) -> None:
    made = schedule(a_request(delay_seconds=5))
    assert not made.replayed
    assert made.job.max_attempts == 4
    assert jobs.statuses() == {"PENDING": 1}
    assert hints == [5]


def test_the_same_request_again_is_answered_with_the_same_job(
    schedule: ScheduleNotification, hints: Hints
) -> None:
    request = a_request(delay_seconds=60, payload={"b": 1, "a": [1.0, {"y": 0, "x": -0.0}]})
    made = schedule(request)
    again = schedule(
        a_request(
            idempotency_key=request.idempotency_key,
            delay_seconds=60,
            payload={"a": [1, {"x": 0, "y": 0}], "b": 1.0},
        )
    )
    assert again.replayed
    assert again.job == made.job
    assert len(hints) == 1


def test_a_replay_shows_the_job_as_it_is_now(schedule: ScheduleNotification, jobs: Jobs) -> None:
    request = a_request()
    made = schedule(request)
    jobs.run(
        "UPDATE notification_jobs SET outcome = 'SENT', ended_at = now(), attempt_count = 1;"
        "DELETE FROM job_queue"
    )
    again = schedule(request)
    assert again.replayed
    assert again.job.id == made.job.id
    assert again.job.status is Status.SENT
    assert again.job.sent_at is not None
    assert again.job.next_attempt_at is None


@pytest.mark.parametrize(
    "change",
    [
        {"recipient": "other@example.com"},
        {"priority": Priority.HIGH},
        {"payload": {"subject": "other"}},
        {"delay_seconds": 61},
        {"send_at": NOW + timedelta(seconds=60)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_request_under_the_same_key_is_refused(
    schedule: ScheduleNotification, jobs: Jobs, change: dict[str, Any]
) -> None:
    request = a_request(delay_seconds=60)
    schedule(request)
    with pytest.raises(KeyReusedError, match=request.idempotency_key):
        schedule(
            a_request(**{"delay_seconds": 60, "idempotency_key": request.idempotency_key} | change)
        )
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 1


def test_a_job_without_a_fingerprint_accepts_any_request(
    schedule: ScheduleNotification, jobs: Jobs
) -> None:
    request = a_request()
    schedule(request)
    jobs.run("UPDATE notification_jobs SET request_fingerprint = NULL")
    other = a_request(idempotency_key=request.idempotency_key, recipient="other@example.com")
    assert schedule(other).replayed


def test_the_horizon_is_a_year_by_our_own_clock(schedule: ScheduleNotification) -> None:
    horizon = NOW + timedelta(days=365)
    assert schedule(a_request(send_at=horizon)).job.scheduled_at == horizon
    with pytest.raises(ScheduleTooFarError, match="sendAt must be within 365 days from now"):
        schedule(a_request(send_at=horizon + timedelta(milliseconds=1)))


def test_the_past_is_due_at_once(schedule: ScheduleNotification, hints: Hints) -> None:
    schedule(a_request(send_at=datetime(2001, 1, 1, tzinfo=UTC)))
    assert hints[0] < 0


def test_an_unknown_id_is_not_found(unit_of_work: UnitOfWorkFactory) -> None:
    unknown = new_id()
    with pytest.raises(NotFoundError, match=f"Notification {unknown} not found"):
        ReadNotification(unit_of_work)(unknown)
