"""What became of claimed jobs, fenced by the token, a constant number of statements a batch."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim, Ended, Result, Retry, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed
from notify_queue.persistence.engine import pooled_engine
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.postgres import Databases, sqlalchemy_url
from tests.support.statements import Statements


def claimed(unit_of_work: UnitOfWorkFactory, count: int) -> list[Claim]:
    with unit_of_work() as unit:
        due = unit.claims.lock_due(count, Aging(0, timedelta(seconds=300)))
        claims = unit.claims.claim(due, "w", uuid4())
        unit.commit()
    return claims


def a_result(claim: Claim, verdict: Verdict) -> Result:
    sent = verdict == Ended(Status.SENT)
    return Result(claim, Delivered("m") if sent else Failed("no"), verdict, duration_ms=1)


def record(unit_of_work: UnitOfWorkFactory, *results: Result) -> set[UUID]:
    with unit_of_work() as unit:
        recorded = unit.results.record(results, limited=False)
        unit.commit()
    return recorded


def test_a_sent_job_leaves_the_queue_and_keeps_its_history(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    [job_id] = jobs.add()
    [claim] = claimed(unit_of_work, 1)
    assert record(unit_of_work, a_result(claim, Ended(Status.SENT))) == {job_id}
    row = jobs.row(job_id)
    assert row["status"] == "SENT"
    assert row["sent_at"] is not None
    assert row["attempt_count"] == 1
    assert row["last_error"] is None
    assert row["next_attempt_at"] is None
    assert row["updated_at"] == row["sent_at"] > row["created_at"]
    assert jobs.one("SELECT count(*) FROM job_queue") == 0


@pytest.mark.parametrize("status", [Status.FAILED, Status.DEAD_LETTERED])
def test_a_job_that_ends_badly_keeps_its_error(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, status: Status
) -> None:
    [job_id] = jobs.add()
    [claim] = claimed(unit_of_work, 1)
    record(unit_of_work, a_result(claim, Ended(status, "it broke")))
    row = jobs.row(job_id)
    assert (row["status"], row["last_error"]) == (status.value, "it broke")
    assert row[f"{status.value.lower()}_at"] is not None


def test_a_retried_job_waits_for_its_backoff_by_the_database_clock(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    [job_id] = jobs.add()
    [claim] = claimed(unit_of_work, 1)
    before = jobs.one("SELECT clock_timestamp()")
    record(unit_of_work, a_result(claim, Retry(90_500, "later")))
    row = jobs.row(job_id)
    assert (row["status"], row["attempt_count"], row["last_error"]) == ("PENDING", 1, "later")
    assert (row["locked_by"], row["claim_token"], row["locked_at"]) == (None, None, None)
    assert row["updated_at"] > row["created_at"]
    waits = row["next_attempt_at"] - before
    assert timedelta(seconds=90.5) <= waits < timedelta(seconds=95)


def test_one_batch_may_hold_every_kind_of_verdict(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(4)
    first, second, third, fourth = claimed(unit_of_work, 4)
    recorded = record(
        unit_of_work,
        a_result(first, Ended(Status.SENT)),
        a_result(second, Retry(60_000, "later")),
        a_result(third, Ended(Status.FAILED, "never")),
        a_result(fourth, Ended(Status.DEAD_LETTERED, "enough")),
    )
    assert len(recorded) == 4
    assert jobs.statuses() == {"SENT": 1, "PENDING": 1, "FAILED": 1, "DEAD_LETTERED": 1}


@pytest.mark.parametrize("verdict", [Ended(Status.SENT), Retry(60_000, "later")])
def test_a_late_worker_changes_nothing_and_learns_it(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, verdict: Verdict
) -> None:
    [stolen, kept] = jobs.add(2)
    claims = {claim.job_id: claim for claim in claimed(unit_of_work, 2)}
    with engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'other',"
                " attempt_count = 2 WHERE job_id = :id"
            ),
            {"id": stolen},
        )
    before = jobs.row(stolen)
    results = [a_result(claims[job_id], verdict) for job_id in (stolen, kept)]
    assert record(unit_of_work, *results) == {kept}
    assert jobs.row(stolen) == before
    assert record(unit_of_work, *results) == set()


def test_a_result_recorded_twice_counts_once(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    [job_id] = jobs.add()
    [claim] = claimed(unit_of_work, 1)
    result = a_result(claim, Ended(Status.SENT))
    assert record(unit_of_work, result) == {job_id}
    before = jobs.row(job_id)
    assert record(unit_of_work, result) == set()
    assert jobs.row(job_id) == before


def test_a_batch_of_a_hundred_takes_as_many_statements_as_a_batch_of_one(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine
) -> None:
    jobs.add(101)
    counts = []
    for size in (1, 100):
        with Statements(engine) as statements:
            claims = claimed(unit_of_work, size)
            record(unit_of_work, *(a_result(claim, Ended(Status.SENT)) for claim in claims))
        counts.append(len(statements.seen))
    assert counts[0] == counts[1]


def test_completing_a_job_touches_no_index_of_the_ledger(databases: Databases) -> None:
    """History's indexes get one entry per job, ever (docs/decisions/0002)."""
    url = databases.clone()
    engine = pooled_engine(sqlalchemy_url(url), "heap-only updates", 1)
    units = unit_of_work_factory(engine)
    Jobs(engine).add(400)
    claims = claimed(units, 400)
    results = [a_result(claim, Ended(Status.SENT)) for claim in claims]
    with units() as unit:
        assert len(unit.results.record(results, limited=False)) == 400
        updated, heap_only = unit._session.execute(
            text(
                "SELECT pg_stat_get_xact_tuples_updated('notification_jobs'::regclass),"
                " pg_stat_get_xact_tuples_hot_updated('notification_jobs'::regclass)"
            )
        ).one()
    engine.dispose()
    databases.drop(url)
    assert updated == 400
    # The last page of the inserts may be filled beyond the fill factor by a row or two.
    assert heap_only >= 396


@pytest.mark.parametrize(
    "change",
    [
        "outcome = 'SENT'",
        "ended_at = now()",
        "outcome = 'PENDING', ended_at = now()",
        "attempt_count = 7",
        "attempt_count = -1",
        "max_attempts = 0",
        "redrive_count = 1",
        "last_redriven_at = now()",
        "redrive_count = -1, last_redriven_at = now()",
        "channel = 'FAX'",
        "priority = 0",
        "payload = '[]'",
    ],
)
def test_what_must_not_be_cannot_be_written_into_the_ledger(
    jobs: Jobs, engine: Engine, change: str
) -> None:
    jobs.add()
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(text(f"UPDATE notification_jobs SET {change}"))
