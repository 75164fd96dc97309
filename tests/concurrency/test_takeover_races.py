"""Workers, recovery and operators racing for the same jobs, each on a connection of its own."""

import threading
from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Ended, Result
from notify_queue.domain.errors import NotCancellableError
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered
from notify_queue.domain.redrive import Selection
from notify_queue.maintenance.recover import RecoverExpired
from notify_queue.notifications.cancel import CancelNotification
from notify_queue.notifications.redrive import RedriveNotifications
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs
from tests.support.load import at_once

STRICT = Aging(0, timedelta(seconds=300))
LEASE_S = 60


def test_recoverers_at_once_take_each_job_back_once(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(300)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'w',"
        " locked_at = now() - interval '1 hour', attempt_count = 1"
    )
    recover = RecoverExpired(unit_of_work, "w", LEASE_S, limited=True)

    def until_none_is_left() -> int:
        taken = 0
        while (done := recover(limit=20)).full or done.requeued:
            taken += done.requeued
        return taken

    taken = at_once([until_none_is_left] * 6)
    assert sum(taken) == 300
    assert jobs.statuses() == {"PENDING": 300}
    assert jobs.one("SELECT max(attempt_count) FROM job_queue") == 1


def test_an_expired_job_is_either_recorded_by_its_worker_or_taken_back(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(200)
    with unit_of_work() as unit:
        claims = unit.claims.claim(unit.claims.lock_due(200, STRICT), "late", uuid4())
        unit.commit()
    jobs.run("UPDATE job_queue SET locked_at = now() - interval '1 hour'")
    recover = RecoverExpired(unit_of_work, "w", LEASE_S, limited=True)
    recorded: set[UUID] = set()

    def record_late() -> int:
        for claim in reversed(claims):
            with unit_of_work() as unit:
                recorded.update(
                    unit.results.record(
                        [Result(claim, Delivered("m"), Ended(Status.SENT), duration_ms=1)],
                        limited=True,
                    )
                )
                unit.commit()
        return 0

    def take_back() -> int:
        return sum(recover(limit=1).requeued for _ in range(200))

    counted = at_once([record_late, take_back, take_back])
    assert len(recorded) + sum(counted) == 200
    assert Counter(jobs.statuses()) == Counter(SENT=len(recorded), PENDING=sum(counted))


def test_a_job_is_either_cancelled_or_claimed(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    added = jobs.add(200)
    cancel = CancelNotification(unit_of_work)
    over = threading.Event()
    claimed: list[UUID] = []
    cancelled: list[UUID] = []

    def claim_all() -> None:
        while not over.is_set():
            with unit_of_work() as unit:
                due = unit.claims.lock_due(3, STRICT)
                claimed.extend(
                    claim.job_id for claim in unit.claims.claim(due, "w", uuid4()) if due
                )
                unit.commit()

    def cancel_all() -> None:
        for job_id in reversed(added):
            try:
                cancel(job_id)
            except NotCancellableError:
                continue
            cancelled.append(job_id)
        over.set()

    at_once([claim_all, claim_all, cancel_all])
    assert sorted(claimed + cancelled) == sorted(added)
    assert Counter(jobs.statuses()) == Counter(PROCESSING=len(claimed), CANCELLED=len(cancelled))


def test_bulk_redrives_at_once_redrive_each_job_once(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(50)
    jobs.run("DELETE FROM job_queue")
    jobs.run("UPDATE notification_jobs SET outcome = 'DEAD_LETTERED', ended_at = now()")
    redrive = RedriveNotifications(unit_of_work, 6, lambda _: None)
    redriven = at_once([lambda: redrive(Selection(), 50).retried] * 5)
    assert sum(redriven) == 50
    assert jobs.one("SELECT max(redrive_count) FROM notification_jobs") == 1
    assert jobs.statuses() == {"PENDING": 50}
