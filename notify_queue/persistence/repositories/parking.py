"""The jobs that wait at gates: parked, found when it is their turn, let go.

Their rows are locked as all rows of the queue are: skipping what somebody else has locked.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Integer, Select, Text, Update, null, select, true, update
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.lifecycle import CLAIMABLE
from notify_queue.persistence.arrays import listed_jobs, rows_of
from notify_queue.persistence.candidates import BEST_FIRST, CANDIDATE, as_candidate
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import QueueEntry


class Parking:
    """Parks jobs and finds those whose turn it is."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def park(self, refused: Sequence[Candidate]) -> None:
        """Let locked jobs wait at their recipients' gates: still PENDING, no attempt spent.

        The due time stays, and with it the place among those that wait.
        """
        self._session.execute(_park(), {"job_ids": [each.job_id for each in refused]})

    def unpark(self, job_ids: Sequence[UUID]) -> None:
        """Let locked jobs wait as if their recipient had no limit."""
        self._session.execute(_unpark(), {"job_ids": list(job_ids)})

    def lock_next(
        self, free: Mapping[str, int], holders: Sequence[UUID], aging_after: timedelta
    ) -> list[Candidate]:
        """Lock as many parked jobs of each recipient as it has ``free`` slots, the best ones.

        Then those of ``holders`` that are parked as well, which after the limit was lowered may be
        called before their own slot is free.
        """
        locked: dict[UUID, Candidate] = {}
        if free:
            given = {"given_recipient": list(free), "given_free": list(free.values())}
            locked |= self._lock(_lock_best(), **given, aging_after=aging_after)
        if holders:
            locked |= self._lock(_lock_these(), job_ids=list(holders), aging_after=aging_after)
        return list(locked.values())

    def _lock(self, statement: Select[Any], **given: Any) -> dict[UUID, Candidate]:
        rows = self._session.execute(statement, given)
        return {row.job_id: as_candidate(row) for row in rows}

    def lock_some(self, count: int) -> list[UUID]:
        """Lock up to ``count`` parked jobs, whosever they are."""
        parked = (
            select(QueueEntry.job_id)
            .where(QueueEntry.gate.is_not(None))
            .limit(count)
            .with_for_update(skip_locked=True)
        )
        return list(self._session.scalars(parked))


# Built once: putting a statement together takes as long as running it.
@cache
def _park() -> Update:
    return (
        update(QueueEntry)
        .where(QueueEntry.job_id == listed_jobs(), entry_is(CLAIMABLE))
        .values(rate_limited=True, gate=QueueEntry.recipient)
        .execution_options(synchronize_session=False)
    )


@cache
def _unpark() -> Update:
    return (
        update(QueueEntry)
        .where(QueueEntry.job_id == listed_jobs())
        .values(rate_limited=False, gate=null())
        .execution_options(synchronize_session=False)
    )


@cache
def _lock_best() -> Select[Any]:
    given = rows_of({"recipient": Text, "free": Integer})
    best = (
        select(*CANDIDATE)
        .where(QueueEntry.gate == given.c.recipient)
        .order_by(*BEST_FIRST)
        .limit(given.c.free)
        .with_for_update(skip_locked=True)
        .lateral("best")
    )
    return select(best).join_from(given, best, true())


@cache
def _lock_these() -> Select[Any]:
    """Not by the gate: with outdated statistics the index of all parked jobs might be read."""
    return (
        select(*CANDIDATE)
        .where(QueueEntry.job_id == listed_jobs(), QueueEntry.rate_limited)
        .with_for_update(skip_locked=True)
    )
