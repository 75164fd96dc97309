"""Every pair of states, tried on the database with the statement that leads from one to the other.

What the table allows happens, and what it does not changes nothing.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Candidate, Claim, Ended, Release, Result, Retry, Verdict
from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import AUTOMATIC, ENDINGS, LIVE, OPERATOR, Moves, Status
from notify_queue.domain.outcome import Failed
from notify_queue.domain.recovery import ExpiredClaim, Recovered, Requeue
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.support.jobs import Jobs

TOKEN: Final = uuid4()
LEASE: Final = timedelta(seconds=60)
Move = Callable[[UnitOfWork, UUID], object]


def _claim(unit: UnitOfWork, job_id: UUID) -> object:
    """Both statements of a claim: the second is tried even when the first has listed nothing."""
    unit.claims.lock_due(10, Aging(0, LEASE))
    listed = Candidate(
        job_id,
        "r",
        Priority.NORMAL,
        due_at=None,  # type: ignore[arg-type] # not looked at when claiming
        attempt=1,
        aged=False,
        suspect=False,
        parked=False,
    )
    return unit.claims.claim([listed], "w", uuid4())


def _record(verdict: Verdict) -> Move:
    def move(unit: UnitOfWork, job_id: UUID) -> object:
        claim = Claim(
            job_id,
            TOKEN,
            1,
            6,
            Channel.EMAIL,
            "r",
            {},
            Priority.NORMAL,
            due_at=None,  # type: ignore[arg-type] # not looked at when recording
        )
        return unit.results.record(
            [Result(claim, Failed("no"), verdict, duration_ms=1)], limited=True
        )

    return move


def _recover(recovery: Requeue | Ended) -> Move:
    def move(unit: UnitOfWork, job_id: UUID) -> object:
        claim = ExpiredClaim(job_id, TOKEN, "w", 1, 6, reconciliation_granted=False)
        return unit.recovery.write([Recovered(claim, recovery)], LEASE, limited=True)

    return move


def _cancel(unit: UnitOfWork, job_id: UUID) -> object:
    return unit.operations.cancel(job_id)


def _redrive(unit: UnitOfWork, job_id: UUID) -> object:
    return unit.operations.redrive([job_id], 6)


# Every statement of the product that moves a job, by the half of the table that allows it.
MOVES: Final[list[tuple[str, Moves, Status, Move]]] = [
    ("claim", AUTOMATIC, Status.PROCESSING, _claim),
    ("retry", AUTOMATIC, Status.PENDING, _record(Retry(0, "no"))),
    ("release", AUTOMATIC, Status.PENDING, _record(Release())),
    ("recover", AUTOMATIC, Status.PENDING, _recover(Requeue("expired"))),
    *(
        (f"end as {status}", AUTOMATIC, status, _record(Ended(status, "no")))
        for status in sorted(ENDINGS)
    ),
    (
        "recover for good",
        AUTOMATIC,
        Status.DEAD_LETTERED,
        _recover(Ended(Status.DEAD_LETTERED, "expired")),
    ),
    ("cancel", OPERATOR, Status.CANCELLED, _cancel),
    ("redrive", OPERATOR, Status.PENDING, _redrive),
]


def _put(jobs: Jobs, engine: Engine, status: Status) -> UUID:
    """Write a job in this state with SQL of the test's own."""
    [job_id] = jobs.add()
    with engine.begin() as connection:
        if status is Status.PROCESSING:
            connection.execute(
                text(
                    "UPDATE job_queue SET claim_token = :token, locked_by = 'w',"
                    " locked_at = now() - interval '2 minutes', attempt_count = 1"
                ),
                {"token": TOKEN},
            )
        elif status not in LIVE:
            connection.execute(text("DELETE FROM job_queue"))
            connection.execute(
                text("UPDATE notification_jobs SET outcome = :outcome, ended_at = now()"),
                {"outcome": status.value},
            )
    assert jobs.row(job_id)["status"] == status
    return job_id


@pytest.mark.parametrize("source", Status)
@pytest.mark.parametrize("attempted", MOVES, ids=[name for name, *_ in MOVES])
def test_a_job_moves_exactly_as_the_table_says(
    unit_of_work: UnitOfWorkFactory,
    jobs: Jobs,
    engine: Engine,
    source: Status,
    attempted: tuple[str, Moves, Status, Move],
) -> None:
    _, table, target, move = attempted
    job_id = _put(jobs, engine, source)
    before = jobs.row(job_id)
    with unit_of_work() as unit:
        moved = move(unit, job_id)
        unit.commit()
    after = jobs.row(job_id)
    if target in table.get(source, frozenset()):
        assert moved
        assert after["status"] == target
    else:
        assert not moved
        assert after == before


def test_every_move_of_the_table_has_its_statement() -> None:
    for table in (AUTOMATIC, OPERATOR):
        made = {target for _, of_table, target, _ in MOVES if of_table is table}
        assert made == frozenset().union(*table.values())
