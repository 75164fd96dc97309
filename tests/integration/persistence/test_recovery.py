"""Expired claims are taken back: bounded, fenced, and without losing their place."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim, Ended, Release, Result
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, NotSent
from notify_queue.domain.recovery import Recovered
from notify_queue.domain.recovery import recover as recovery_of
from notify_queue.maintenance.recover import Pass, RecoverExpired
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs
from tests.support.statements import Statements

LEASE_S = 60
EXPIRED = "Claim expired after 60s without completion"


@pytest.fixture
def recover(unit_of_work: UnitOfWorkFactory) -> RecoverExpired:
    return RecoverExpired(unit_of_work, "recoverer", LEASE_S, limited=False)


def claimed(unit_of_work: UnitOfWorkFactory, count: int) -> list[Claim]:
    with unit_of_work() as unit:
        due = unit.claims.lock_due(count, Aging(0, timedelta(seconds=300)))
        claims = unit.claims.claim(due, "dead-worker", uuid4())
        unit.commit()
    return claims


def expire(jobs: Jobs, *job_ids: UUID, by_s: float = 1) -> None:
    jobs.run(
        "UPDATE job_queue SET locked_at = now() - make_interval(secs => :age)"
        " WHERE job_id = ANY(:ids)",
        age=LEASE_S + by_s,
        ids=list(job_ids),
    )


def test_an_expired_job_waits_again_in_its_old_place(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    [job_id] = jobs.add(due_in_s=-500)
    before = jobs.row(job_id)
    claimed(unit_of_work, 1)
    expire(jobs, job_id)

    assert recover() == Pass(requeued=1, dead_lettered=0, full=False, next_s=None)

    row = jobs.row(job_id)
    assert (row["status"], row["attempt_count"], row["last_error"]) == ("PENDING", 1, EXPIRED)
    assert (row["claim_token"], row["locked_by"], row["locked_at"]) == (None, None, None)
    # Not now(): it would go behind all that became due while its worker was dying (W-27).
    assert row["next_attempt_at"] == before["next_attempt_at"]
    assert row["max_attempts"] == before["max_attempts"]
    assert row["updated_at"] > before["updated_at"]
    assert [claim.job_id for claim in claimed(unit_of_work, 1)] == [job_id]


def test_a_claim_within_its_lease_is_left_alone(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    [fresh] = jobs.add()
    claimed(unit_of_work, 1)
    expire(jobs, fresh, by_s=-20)
    before = jobs.row(fresh)
    done = recover()
    assert (done.requeued, done.dead_lettered) == (0, 0)
    assert done.next_s == pytest.approx(20, abs=5)
    assert jobs.row(fresh) == before


def test_the_final_attempt_is_granted_one_more_and_then_no_other(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    [job_id] = jobs.add(max_attempts=1)
    claimed(unit_of_work, 1)
    expire(jobs, job_id)
    assert recover().requeued == 1
    row = jobs.row(job_id)
    assert (row["status"], row["attempt_count"], row["max_attempts"]) == ("PENDING", 1, 2)
    assert row["reconciliation_granted"]
    assert row["last_error"] == (
        "Final attempt's claim expired after 60s; outcome unknown,"
        " one reconciliation attempt granted"
    )

    with unit_of_work() as unit:
        [claim] = unit.claims.claim(unit.claims.lock_suspects(1), "w", uuid4())
        unit.commit()
    assert (claim.attempt, claim.max_attempts) == (2, 2)
    expire(jobs, job_id)
    assert recover().dead_lettered == 1
    row = jobs.row(job_id)
    assert (row["status"], row["last_error"]) == ("DEAD_LETTERED", EXPIRED)
    assert row["dead_lettered_at"] is not None
    assert (row["attempt_count"], row["max_attempts"]) == (2, 2)
    assert jobs.one("SELECT count(*) FROM job_queue") == 0


def test_a_pass_takes_its_limit_the_longest_expired_first_and_says_that_more_is_left(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    added = jobs.add(7)
    claimed(unit_of_work, 7)
    for age, job_id in enumerate(added):
        expire(jobs, job_id, by_s=100 - age)
    first = recover(limit=3)
    assert (first.requeued, first.full) == (3, True)
    assert {job_id for job_id in added if jobs.row(job_id)["status"] == "PENDING"} == set(added[:3])
    assert recover(limit=3).full
    assert recover(limit=3) == Pass(requeued=1, dead_lettered=0, full=False, next_s=None)


def test_it_is_as_many_statements_for_one_as_for_hundreds(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, recover: RecoverExpired
) -> None:
    counts = []
    for size in (1, 300):
        added = jobs.add(size)
        claimed(unit_of_work, size)
        expire(jobs, *added)
        with Statements(engine) as statements:
            assert recover().requeued == size
        counts.append(len(statements.seen))
        jobs.run("UPDATE job_queue SET due_at = now() + interval '1 day'")
    assert counts[0] == counts[1]


def test_a_job_that_ends_while_recovery_looks_is_left_as_it_ended(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, recover: RecoverExpired
) -> None:
    """A late worker is just recording: its rows are passed over, the others recovered (C2)."""
    ending, other = jobs.add(2)
    claims = {claim.job_id: claim for claim in claimed(unit_of_work, 2)}
    expire(jobs, ending, other)
    with unit_of_work() as late:
        late.results.record(
            [Result(claims[ending], Delivered("m"), Ended(Status.SENT), duration_ms=1)],
            limited=True,
        )
        done = recover()
        # What is held is looked at again soon, but not in a busy loop.
        assert (done.requeued, done.next_s) == (1, 1)
        late.commit()
    assert recover().requeued == 0
    assert jobs.row(ending)["status"] == "SENT"
    assert jobs.row(other)["status"] == "PENDING"


@pytest.mark.parametrize(
    "change",
    [
        "claim_token = gen_random_uuid()",
        "locked_at = now()",
        "claim_token = NULL, locked_by = NULL, locked_at = NULL",
    ],
)
def test_the_writing_statement_asks_again(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, change: str
) -> None:
    """What was listed and is no longer true is not written, by whatever way it changed."""
    lease = timedelta(seconds=LEASE_S)
    requeued, ended = jobs.add(2, max_attempts=2)
    claimed(unit_of_work, 2)
    jobs.run(
        "UPDATE job_queue SET attempt_count = 2, reconciliation_granted = true WHERE job_id = :id",
        id=ended,
    )
    expire(jobs, requeued, ended)
    with unit_of_work() as unit:
        listed = unit.recovery.lock_expired(10, lease)
    assert {claim.job_id for claim in listed} == {requeued, ended}
    if "NULL" in change:
        change += ", attempt_count = 1"
    jobs.run(f"UPDATE job_queue SET {change}")
    before = [jobs.row(requeued), jobs.row(ended)]
    with unit_of_work() as unit:
        decided = [Recovered(claim, recovery_of(claim, LEASE_S)) for claim in listed]
        assert unit.recovery.write(decided, lease, limited=False) == set()
        unit.commit()
    assert [jobs.row(requeued), jobs.row(ended)] == before


def test_a_late_worker_changes_nothing_after_recovery(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    [job_id] = jobs.add()
    [claim] = claimed(unit_of_work, 1)
    expire(jobs, job_id)
    recover()
    before = jobs.row(job_id)
    late = [
        Result(claim, Delivered("m"), Ended(Status.SENT), duration_ms=1),
        Result(claim, NotSent(), Release(), duration_ms=0),
    ]
    for result in late:
        with unit_of_work() as unit:
            assert unit.results.record([result], limited=False) == set()
            unit.commit()
    assert jobs.row(job_id) == before


def test_a_released_job_is_as_if_it_had_never_been_claimed(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine
) -> None:
    [job_id] = jobs.add(due_in_s=-30)
    entry = text("SELECT * FROM job_queue WHERE job_id = :id")
    with engine.connect() as connection:
        before = connection.execute(entry, {"id": job_id}).one()
    [claim] = claimed(unit_of_work, 1)
    with unit_of_work() as unit:
        released = unit.results.record(
            [Result(claim, NotSent(), Release(), duration_ms=0)], limited=False
        )
        unit.commit()
    assert released == {job_id}
    with engine.connect() as connection:
        assert connection.execute(entry, {"id": job_id}).one() == before


def test_what_a_pass_would_find_can_be_counted(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    added = jobs.add(3)
    claimed(unit_of_work, 3)
    assert recover.count() == 0
    expire(jobs, *added[:2])
    assert recover.count() == 2


def test_a_ledger_row_that_somebody_holds_keeps_no_other_job_waiting(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, recover: RecoverExpired
) -> None:
    held, *others = jobs.add(20)
    claimed(unit_of_work, 20)
    expire(jobs, held, by_s=500)
    expire(jobs, *others)
    with engine.begin() as somebody:
        somebody.execute(
            text("SELECT 1 FROM notification_jobs WHERE id = :id FOR UPDATE"), {"id": held}
        )
        assert (recover().requeued, jobs.row(held)["status"]) == (19, "PROCESSING")
    assert recover().requeued == 1


def test_a_row_that_the_server_refuses_keeps_no_other_job_waiting(
    unit_of_work: UnitOfWorkFactory,
    jobs: Jobs,
    recover: RecoverExpired,
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused, *others = jobs.add(20)
    claimed(unit_of_work, 20)
    expire(jobs, refused, by_s=500)
    expire(jobs, *others)
    jobs.run(
        "ALTER TABLE job_queue ADD CONSTRAINT ck_no"
        f" CHECK (job_id <> '{refused}' OR claim_token IS NOT NULL) NOT VALID"
    )
    try:
        # Not even when passes are so small that it fills one.
        assert (recover(limit=1).requeued, recover(limit=1).requeued) == (0, 1)
        done = recover()
    finally:
        jobs.run("ALTER TABLE job_queue DROP CONSTRAINT ck_no")
    assert (done.requeued, done.next_s) == (18, 1)
    assert jobs.row(refused)["status"] == "PROCESSING"
    records: list[Any] = [each.msg for each in caplog.records]
    [record] = [each for each in records if each["event"] == "job.recovery_failed"]
    assert record["jobId"] == str(refused)
    assert record["error"]["constraint"] == "ck_no"


def test_a_suspect_is_claimed_by_nobody_but_who_asks_for_one(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, recover: RecoverExpired
) -> None:
    low, high = jobs.add(max_attempts=1), jobs.add(max_attempts=1, priority=Priority.HIGH)
    claimed(unit_of_work, 2)
    expire(jobs, *low, *high)
    recover()
    assert claimed(unit_of_work, 10) == []
    with unit_of_work() as unit:
        assert unit.claims.suspect_waits()
        assert [each.job_id for each in unit.claims.lock_suspects(1)] == high
        with unit_of_work() as other:
            assert [each.job_id for each in other.claims.lock_suspects(1)] == low


def test_one_refused_row_costs_a_pass_a_few_statements_more(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, recover: RecoverExpired
) -> None:
    refused, *others = jobs.add(400)
    claimed(unit_of_work, 400)
    expire(jobs, refused, *others)
    jobs.run(
        "ALTER TABLE job_queue ADD CONSTRAINT ck_no"
        f" CHECK (job_id <> '{refused}' OR claim_token IS NOT NULL) NOT VALID"
    )
    try:
        with Statements(engine) as statements:
            assert recover().requeued == 399
    finally:
        jobs.run("ALTER TABLE job_queue DROP CONSTRAINT ck_no")
    assert len(statements.seen) < 100
