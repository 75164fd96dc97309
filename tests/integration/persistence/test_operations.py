"""What operators do: each write is guarded, whole, and answers with the row it wrote."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import sessionmaker

from notify_queue.domain.aging import Aging
from notify_queue.domain.errors import NotCancellableError, NotFoundError, NotRedrivableError
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.page import place_of
from notify_queue.domain.redrive import Selection
from notify_queue.notifications.cancel import CancelNotification
from notify_queue.notifications.read import ReadNotification
from notify_queue.notifications.redrive import (
    Redriven,
    RedriveNotification,
    RedriveNotifications,
)
from notify_queue.persistence.repositories.operations import Operations
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.support.jobs import Jobs

BUDGET = 4


@pytest.fixture
def cancel(unit_of_work: UnitOfWorkFactory) -> CancelNotification:
    return CancelNotification(unit_of_work)


@pytest.fixture
def hints() -> list[float]:
    return []


@pytest.fixture
def redrive_one(unit_of_work: UnitOfWorkFactory, hints: list[float]) -> RedriveNotification:
    return RedriveNotification(unit_of_work, BUDGET, hints.append)


@pytest.fixture
def redrive_many(unit_of_work: UnitOfWorkFactory, hints: list[float]) -> RedriveNotifications:
    return RedriveNotifications(unit_of_work, BUDGET, hints.append)


def ended(jobs: Jobs, count: int, status: Status = Status.DEAD_LETTERED) -> list[UUID]:
    """Jobs that ended a minute ago after three attempts, created a second apart, oldest first."""
    added = jobs.add(count)
    jobs.run("DELETE FROM job_queue WHERE job_id = ANY(:ids)", ids=added)
    jobs.run(
        "UPDATE notification_jobs SET outcome = :outcome, ended_at = now() - interval '1 minute',"
        " attempt_count = 3, last_error = 'it broke',"
        " created_at = created_at - make_interval(mins => 10, secs => :count"
        " - array_position(:ids, id)) WHERE id = ANY(:ids)",
        outcome=status.value,
        count=count,
        ids=added,
    )
    return added


def test_a_waiting_job_is_cancelled_and_never_claimed(
    cancel: CancelNotification, unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    [job_id] = jobs.add()
    job = cancel(job_id)
    assert job.status is Status.CANCELLED
    assert job.cancelled_at is not None
    assert job.updated_at == job.cancelled_at
    assert job.next_attempt_at is None
    assert (job.sent_at, job.failed_at, job.dead_lettered_at) == (None, None, None)
    assert job == ReadNotification(unit_of_work)(job_id)
    assert jobs.one("SELECT count(*) FROM job_queue") == 0


def test_a_job_that_waits_for_a_retry_keeps_what_is_known_of_it(
    cancel: CancelNotification, jobs: Jobs
) -> None:
    [job_id] = jobs.add(due_in_s=30)
    jobs.run("UPDATE job_queue SET attempt_count = 2, max_attempts = 7")
    jobs.run("UPDATE notification_jobs SET last_error = 'it broke'")
    job = cancel(job_id)
    assert (job.attempt_count, job.max_attempts, job.last_error) == (2, 7, "it broke")


def test_cancelling_again_changes_nothing(cancel: CancelNotification, jobs: Jobs) -> None:
    [job_id] = jobs.add()
    assert cancel(job_id) == cancel(job_id)


def test_what_does_not_wait_is_not_cancelled(cancel: CancelNotification, jobs: Jobs) -> None:
    [job_id] = ended(jobs, 1)
    with pytest.raises(NotCancellableError, match="is DEAD_LETTERED; only PENDING jobs can be"):
        cancel(job_id)
    with pytest.raises(NotFoundError):
        cancel(uuid4())


@pytest.mark.parametrize("status", [Status.DEAD_LETTERED, Status.FAILED])
def test_an_ended_job_is_put_back_with_a_fresh_budget_and_its_history(
    redrive_one: RedriveNotification,
    unit_of_work: UnitOfWorkFactory,
    jobs: Jobs,
    hints: list[float],
    status: Status,
) -> None:
    [job_id] = ended(jobs, 1, status)
    before = jobs.row(job_id)
    job = redrive_one(job_id)
    assert (job.status, job.attempt_count, job.max_attempts) == (Status.PENDING, 0, BUDGET)
    assert (job.redrive_count, job.last_error) == (1, "it broke")
    assert job.last_redriven_at == job.next_attempt_at == job.updated_at
    assert job.updated_at > before["updated_at"]
    assert (job.failed_at, job.dead_lettered_at) == (None, None)
    assert (job.scheduled_at, job.created_at) == (before["scheduled_at"], before["created_at"])
    assert job == ReadNotification(unit_of_work)(job_id)
    assert hints == [0]
    with pytest.raises(NotRedrivableError, match="is PENDING; only DEAD_LETTERED or FAILED jobs"):
        redrive_one(job_id)


def test_the_answer_is_the_row_that_was_written_and_no_later_look(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine
) -> None:
    """However fast a worker is: it has the job before the answer is given (W-14)."""
    [job_id] = ended(jobs, 1)

    class ClaimedAtOnce(UnitOfWork):
        """A worker takes what was committed before anybody can look again."""

        def commit(self) -> None:
            super().commit()
            with unit_of_work() as unit:
                due = unit.claims.lock_due(1, Aging(0, timedelta(seconds=300)))
                assert unit.claims.claim(due, "fast", uuid4())
                unit.commit()

    sessions = sessionmaker(engine, expire_on_commit=False)
    redrive = RedriveNotification(lambda: ClaimedAtOnce(sessions), BUDGET, lambda _: None)
    answer = redrive(job_id)
    assert (answer.status, answer.attempt_count) == (Status.PENDING, 0)
    assert jobs.row(job_id)["status"] == "PROCESSING"


def test_a_reconciliation_grant_belongs_to_the_generation_that_had_it(
    redrive_one: RedriveNotification, jobs: Jobs
) -> None:
    [job_id] = ended(jobs, 1)
    redrive_one(job_id)
    assert jobs.row(job_id)["reconciliation_granted"] is False


def test_many_are_put_back_oldest_first_and_the_rest_is_counted(
    redrive_many: RedriveNotifications, jobs: Jobs
) -> None:
    added = ended(jobs, 5)
    ended(jobs, 2, Status.FAILED)
    assert redrive_many(Selection(), 3) == Redriven(retried=3, remaining=2)
    assert {each for each in added if jobs.row(each)["status"] == "PENDING"} == set(added[:3])
    assert redrive_many(Selection(), 100) == Redriven(retried=2, remaining=0)
    assert redrive_many(Selection(), 100) == Redriven(retried=0, remaining=0)
    assert redrive_many(Selection(Status.FAILED), 100) == Redriven(retried=2, remaining=0)


def test_only_the_selected_are_put_back(redrive_many: RedriveNotifications, jobs: Jobs) -> None:
    old, new, other = ended(jobs, 3)
    jobs.run("UPDATE notification_jobs SET recipient = 'a' WHERE id <> :id", id=other)
    jobs.run(
        "UPDATE notification_jobs SET ended_at = ended_at - interval '1 hour' WHERE id = :id",
        id=old,
    )
    since = jobs.one("SELECT now() - interval '30 minutes'")
    selection = Selection(recipient="a", ended_since=since)
    assert redrive_many.remaining(selection) == 1
    assert [job.id for job in redrive_many.batch(selection, 10)] == [new]
    assert redrive_many.remaining(Selection()) == 2


def test_batches_that_follow_on_come_to_each_job_once(
    redrive_many: RedriveNotifications, jobs: Jobs
) -> None:
    """However soon a job ends again: without this, "until none remain" might never end."""
    added = ended(jobs, 4)
    seen: list[UUID] = []
    selection = Selection()
    while (batch := redrive_many.batch(selection, 1)) and len(seen) < 10:
        [job] = batch
        seen.append(job.id)
        jobs.run("DELETE FROM job_queue")
        jobs.run("UPDATE notification_jobs SET outcome = 'DEAD_LETTERED', ended_at = now()")
        selection = Selection(after=place_of(job))
    assert seen == added


def test_jobs_that_another_call_holds_are_passed_over(
    redrive_many: RedriveNotifications, unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    ended(jobs, 5)
    with unit_of_work() as other:
        assert len(other.operations.lock_redrivable(Selection(), 2)) == 2
        assert redrive_many(Selection(), 10) == Redriven(retried=3, remaining=2)


def test_a_bulk_limit_holds_under_any_plan(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    """Statistics say two rows, and every plan but the nested loop is taken away (C1, W-1)."""
    ended(jobs, 60)
    jobs.run("UPDATE pg_class SET reltuples = 2, relpages = 1 WHERE relname = 'notification_jobs'")
    with unit_of_work() as unit:
        for way in ("hashjoin", "mergejoin", "hashagg", "sort", "material", "seqscan"):
            unit._session.execute(text(f"SET LOCAL enable_{way} = off"))
        listed = unit.operations.lock_redrivable(Selection(), 3)
        assert len(unit.operations.redrive(listed, BUDGET)) == 3
        unit.commit()
    assert jobs.statuses() == {"DEAD_LETTERED": 57, "PENDING": 3}
    jobs.run("ANALYZE notification_jobs")


def test_a_recovery_limit_holds_under_any_plan(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    jobs.add(60)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'w',"
        " locked_at = now() - interval '1 hour', attempt_count = 1"
    )
    jobs.run("UPDATE pg_class SET reltuples = 2, relpages = 1 WHERE relname = 'job_queue'")
    with unit_of_work() as unit:
        for way in ("hashjoin", "mergejoin", "hashagg", "sort", "material", "seqscan"):
            unit._session.execute(text(f"SET LOCAL enable_{way} = off"))
        assert len(unit.recovery.lock_expired(3, timedelta(seconds=60))) == 3


@pytest.mark.parametrize("act", ["cancel", "redrive"])
def test_nothing_is_half_done(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, act: str
) -> None:
    """Both tables or neither, whatever refuses the second one."""
    [waiting] = jobs.add()
    [dead] = ended(jobs, 1)
    refused = "notification_jobs" if act == "cancel" else "job_queue"
    with engine.begin() as connection:
        connection.execute(
            text(f"ALTER TABLE {refused} ADD CONSTRAINT ck_no CHECK (false) NOT VALID")
        )
    before = [jobs.row(waiting), jobs.row(dead)]
    try:
        with pytest.raises(Exception, match="ck_no"), unit_of_work() as unit:
            if act == "cancel":
                unit.operations.cancel(waiting)
            else:
                unit.operations.redrive([dead], BUDGET)
        assert [jobs.row(waiting), jobs.row(dead)] == before
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE {refused} DROP CONSTRAINT ck_no"))


def test_a_bulk_redrive_that_cannot_be_answered_puts_nothing_back(
    redrive_many: RedriveNotifications, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(jobs, 3)

    def too_many(*_: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(Operations, "count_redrivable", too_many)
    with pytest.raises(TimeoutError):
        redrive_many(Selection(), 10)
    assert jobs.statuses() == {"DEAD_LETTERED": 3}
