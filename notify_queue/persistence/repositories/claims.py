"""Due jobs are handed out, each to one worker.

The claim is two statements in one short transaction: one that locks and lists, one that writes
exactly what was listed. A locking select inside the update would be simpler to read and wrong:
planners may run it once per row and claim more than was asked for.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Select,
    SmallInteger,
    Text,
    Update,
    Uuid,
    all_,
    and_,
    bindparam,
    func,
    not_,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Candidate, Claim
from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import CLAIMABLE
from notify_queue.persistence.arrays import listed_jobs
from notify_queue.persistence.candidates import AGED_SINCE, CANDIDATE, as_candidate
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import NotificationJob, QueueEntry

# As the partial index idx_job_queue_claimable says it, to the letter.
_CLAIMABLE = and_(entry_is(CLAIMABLE), not_(QueueEntry.rate_limited))
# A suspect is claimed alone and by another way; the few that are due are passed over in the scan.
_NO_SUSPECT = not_(QueueEntry.reconciliation_granted)
# As the partial index idx_job_queue_suspects says it.
_SUSPECT = and_(_CLAIMABLE, QueueEntry.reconciliation_granted)
# The same for rows that are named by their ids, worded so that the planner cannot prove the index's
# predicate from it: with outdated statistics it would walk the whole index instead of the key.
_STILL_CLAIMABLE = and_(entry_is(CLAIMABLE), QueueEntry.rate_limited.is_not(True))
_IN_ORDER = (QueueEntry.due_at, QueueEntry.created_at)
_OTHERS: ColumnElement[bool] = QueueEntry.recipient != all_(
    bindparam("but_not_to", type_=ARRAY(Text))
)


class Claims:
    """Claims due jobs."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def lock_due(
        self, limit: int, aging: Aging, but_not_to: Collection[str] = ()
    ) -> list[Candidate]:
        """Lock up to ``limit`` due jobs, highest priority first, longest due first within one.

        One range scan a priority: with an equality in front, the claim index stops exactly at
        now(), where a single scan over all priorities would walk every future job of the higher
        ones. Rows that somebody else has locked are passed over, so no worker waits for another;
        so are jobs for the recipients ``but_not_to``. The locks last until the transaction ends,
        which is milliseconds.
        """
        given: dict[str, Any] = {"aging_after": aging.after, "but_not_to": list(but_not_to)}
        places = min(aging.places, limit)
        locked = self._lock(_lock_aged(), **given, limit=places) if places else []
        # SKIP LOCKED passes over strangers' locks, not over our own.
        given["aged"] = [candidate.job_id for candidate in locked]
        for priority in Priority:
            if len(locked) == limit:
                break
            rest = limit - len(locked)
            locked += self._lock(_lock_due(), **given, priority=priority.value, limit=rest)
        return locked

    def lock_suspects(self, limit: int) -> list[Candidate]:
        """Lock up to ``limit`` due jobs that are to be tried alone, the most urgent first.

        Rows that somebody else has locked are passed over, as ever.
        """
        # They are tried in strict order, so nobody asks whether they have aged.
        return self._lock(_lock_suspects(), aging_after=timedelta(0), limit=limit)

    def _lock(self, statement: Select[Any], **given: Any) -> list[Candidate]:
        return [as_candidate(row) for row in self._session.execute(statement, given)]

    def suspect_waits(self) -> bool:
        """Whether a job is due that is to be tried alone. Takes no lock."""
        due = select(QueueEntry.job_id).where(_SUSPECT, QueueEntry.due_at <= func.now()).limit(1)
        return self._session.scalar(due) is not None

    def claim(self, locked: Sequence[Candidate], worker_id: str, token: UUID) -> list[Claim]:
        """Claim exactly these locked jobs and count the attempt. Who was parked is so no more.

        ``locked_at`` is the clock's time, not the transaction's: the lease begins now. All jobs of
        a batch share the token, which is enough: it is fresh for every batch.
        """
        given = {
            "job_ids": [candidate.job_id for candidate in locked],
            "token": token,
            "worker_id": worker_id,
        }
        return [
            Claim(
                job_id=row.job_id,
                token=token,
                attempt=row.attempt_count,
                max_attempts=row.max_attempts,
                channel=Channel(row.channel),
                recipient=row.recipient,
                payload=row.payload,
                priority=Priority(row.priority),
                due_at=row.due_at,
            )
            for row in self._session.execute(_claim(), given)
        ]

    def seconds_until_next(self) -> float | None:
        """How long until the next claimable job is due, or None when none waits.

        Reads on from where ``lock_due`` stopped, at the same ``now()``. A job that is committed
        between the two is seen by the next pass, for which there are hints. One probe of the claim
        index a priority.
        """
        until: Any = self._session.scalar(_seconds_until_next())
        return None if until is None else float(until)


# Built once: putting a statement together takes as long as running it.
@cache
def _lock_due() -> Select[Any]:
    return (
        select(*CANDIDATE)
        .where(_CLAIMABLE, QueueEntry.priority == bindparam("priority", type_=SmallInteger))
        .where(QueueEntry.due_at <= func.now(), _NO_SUSPECT, _OTHERS)
        .where(QueueEntry.job_id != all_(bindparam("aged", type_=ARRAY(Uuid))))
        .order_by(*_IN_ORDER)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@cache
def _lock_aged() -> Select[Any]:
    """The longest due of the jobs that higher priorities have kept waiting too long.

    Listed without locks first, in a materialised CTE, because only the oldest across the priorities
    are wanted; whoever lost them to another worker gets fewer, never others.
    """
    places = bindparam("limit", type_=Integer)
    waiting = [
        select(QueueEntry.job_id, QueueEntry.due_at)
        .where(_CLAIMABLE, QueueEntry.priority == priority)
        .where(QueueEntry.due_at <= AGED_SINCE, _NO_SUSPECT, _OTHERS)
        .order_by(*_IN_ORDER)
        .limit(places)
        .subquery()
        for priority in Priority
        if priority is not max(Priority)
    ]
    either = union_all(*(select(lane) for lane in waiting)).subquery()
    oldest = (
        select(either.c.job_id)
        .order_by(either.c.due_at)
        .limit(places)
        .cte("oldest")
        .prefix_with("MATERIALIZED")
    )
    return (
        select(*CANDIDATE)
        .where(QueueEntry.job_id.in_(select(oldest.c.job_id)), _STILL_CLAIMABLE)
        # Once more: since it was listed, the job may have been tried and put back for later.
        .where(QueueEntry.due_at <= AGED_SINCE)
        .with_for_update(skip_locked=True)
    )


@cache
def _lock_suspects() -> Select[Any]:
    return (
        select(*CANDIDATE)
        .where(_SUSPECT, QueueEntry.due_at <= func.now())
        .order_by(QueueEntry.priority.desc(), *_IN_ORDER)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@cache
def _claim() -> Update:
    return (
        update(QueueEntry)
        .where(QueueEntry.job_id == listed_jobs(), entry_is(CLAIMABLE))
        .where(NotificationJob.id == QueueEntry.job_id)
        .values(
            rate_limited=False,
            gate=null(),
            claim_token=bindparam("token"),
            locked_by=bindparam("worker_id"),
            locked_at=func.clock_timestamp(),
            attempt_count=QueueEntry.attempt_count + 1,
        )
        .returning(
            QueueEntry.job_id,
            QueueEntry.attempt_count,
            QueueEntry.max_attempts,
            QueueEntry.priority,
            QueueEntry.due_at,
            NotificationJob.channel,
            NotificationJob.recipient,
            NotificationJob.payload,
        )
        .execution_options(synchronize_session=False)
    )


@cache
def _seconds_until_next() -> Select[Any]:
    firsts = [
        select(QueueEntry.due_at)
        .where(_CLAIMABLE, QueueEntry.priority == priority, QueueEntry.due_at > func.now())
        .order_by(*_IN_ORDER)
        .limit(1)
        .subquery()
        for priority in Priority
    ]
    due_at = union_all(*(select(first.c.due_at) for first in firsts)).subquery().c.due_at
    return select(func.extract("epoch", func.min(due_at) - func.clock_timestamp()))
