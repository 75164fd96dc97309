"""Where the jobs of a recipient wait whose slots are all taken.

A gate is written only under its recipient's advisory lock, so nobody ever waits for its row. The
rows of parked jobs are locked as all rows of the queue are: skipping what somebody else has locked.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    DateTime,
    Integer,
    SmallInteger,
    Text,
    Uuid,
    any_,
    bindparam,
    delete,
    func,
    literal,
    null,
    select,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import CLAIMABLE
from notify_queue.domain.rate_limit import Gate, RateLimit
from notify_queue.persistence.arrays import rows_of
from notify_queue.persistence.candidates import as_candidate, candidate_columns, has_aged
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import QueueEntry, RecipientGate

_INSTANT: Final = DateTime(timezone=True)
# Best priority and longest due first, as idx_job_queue_parked has it.
_BEST_FIRST = (QueueEntry.priority.desc(), QueueEntry.due_at)
# The priority of the best job that waits at a gate. One probe of that index also to see whether
# there is any: as an EXISTS it could become a join that reads all of them.
_BEST = (
    select(QueueEntry.priority)
    .where(QueueEntry.gate == RecipientGate.recipient)
    .order_by(*_BEST_FIRST)
    .limit(1)
    .scalar_subquery()
)


class Gates:
    """Parks jobs and finds those whose turn it is."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def due(self, limit: int, aging_after: timedelta) -> list[Gate]:
        """Up to ``limit`` gates of each priority that may be open, the longest open first.

        Takes no lock: whoever wants to do something with one locks its recipient.
        """
        lanes = [
            select(
                RecipientGate.recipient,
                RecipientGate.priority,
                RecipientGate.opens_at,
                has_aged(RecipientGate.priority, RecipientGate.opens_at, aging_after).label("aged"),
            )
            .where(RecipientGate.priority == priority, RecipientGate.opens_at <= func.now())
            .order_by(RecipientGate.opens_at)
            .limit(limit)
            .subquery()
            for priority in Priority
        ]
        return [
            Gate(row.recipient, Priority(row.priority), row.opens_at, row.aged)
            for row in self._session.execute(union_all(*(select(lane) for lane in lanes)))
        ]

    def seconds_until_next(self) -> float | None:
        """How long until the next gate may open, or None when there is none.

        Reads on from where ``due`` stopped, at the same ``now()``.
        """
        firsts = [
            select(RecipientGate.opens_at)
            .where(RecipientGate.priority == priority, RecipientGate.opens_at > func.now())
            .order_by(RecipientGate.opens_at)
            .limit(1)
            .subquery()
            for priority in Priority
        ]
        opens_at = union_all(*(select(first.c.opens_at) for first in firsts)).subquery().c.opens_at
        seconds = func.extract("epoch", func.min(opens_at) - func.clock_timestamp())
        until: Any = self._session.scalar(select(seconds))
        return None if until is None else float(until)

    def lock_parked(
        self, free: Mapping[str, int], holders: Sequence[UUID], aging_after: timedelta
    ) -> list[Candidate]:
        """Lock as many parked jobs of each recipient as it has ``free`` slots, the best ones.

        Then those of ``holders`` that are parked as well, which after the limit was lowered may be
        called before their own slot is free.
        """
        best = self._lock_best(free, aging_after) if free else []
        if not holders:
            return best
        listed = bindparam("job_ids", holders, ARRAY(Uuid))
        # Not by its gate, or with outdated statistics the index of all parked jobs might be read.
        own = (
            select(*candidate_columns(aging_after))
            .where(QueueEntry.job_id == any_(listed), QueueEntry.rate_limited)
            .where(QueueEntry.job_id.not_in([each.job_id for each in best]))
            .with_for_update(skip_locked=True)
        )
        return best + [as_candidate(row) for row in self._session.execute(own)]

    def _lock_best(self, free: Mapping[str, int], aging_after: timedelta) -> list[Candidate]:
        given = rows_of({"recipient": (Text, list(free)), "free": (Integer, list(free.values()))})
        best = (
            select(*candidate_columns(aging_after))
            .where(QueueEntry.gate == given.c.recipient)
            .order_by(*_BEST_FIRST)
            .limit(given.c.free)
            .with_for_update(skip_locked=True)
            .lateral("best")
        )
        return [
            as_candidate(row)
            for row in self._session.execute(select(best).join_from(given, best, true()))
        ]

    def park(
        self, refused: Sequence[Candidate], opens_at: Mapping[str, datetime], limit: RateLimit
    ) -> None:
        """Let locked jobs wait at their recipients' gates: still PENDING, no attempt spent.

        The due time stays, and with it the place among those that wait. A gate comes before its
        first job, which must not wait at one that is not there.
        """
        best: dict[str, int] = {}
        for candidate in refused:
            best[candidate.recipient] = max(best.get(candidate.recipient, 0), candidate.priority)
        gates = rows_of(
            {
                "recipient": (Text, list(best)),
                "opens_at": (_INSTANT, [opens_at[recipient] for recipient in best]),
                "priority": (SmallInteger, list(best.values())),
            }
        )
        policy = [literal(value, Integer) for value in _policy(limit).values()]
        self._session.execute(
            insert(RecipientGate)
            .from_select(
                ["recipient", "opens_at", "priority", *_policy(limit)], select(*gates.c, *policy)
            )
            .on_conflict_do_nothing()
        )
        listed = bindparam("job_ids", [each.job_id for each in refused], ARRAY(Uuid))
        self._session.execute(
            update(QueueEntry)
            .where(QueueEntry.job_id == any_(listed), entry_is(CLAIMABLE))
            .values(rate_limited=True, gate=QueueEntry.recipient)
            .execution_options(synchronize_session=False)
        )

    def unpark(self, job_ids: Sequence[UUID]) -> None:
        """Let locked jobs wait as if their recipient had no limit."""
        listed = bindparam("job_ids", job_ids, ARRAY(Uuid))
        self._session.execute(
            update(QueueEntry)
            .where(QueueEntry.job_id == any_(listed))
            .values(rate_limited=False, gate=null())
            .execution_options(synchronize_session=False)
        )

    def settle(self, opens_at: Mapping[str, datetime], limit: RateLimit) -> None:
        """Close the gates at which nobody waits any more, and say of the others when they open."""
        self.close_deserted(opens_at)
        given = rows_of(
            {
                "recipient": (Text, list(opens_at)),
                "opens_at": (_INSTANT, list(opens_at.values())),
            }
        )
        self._session.execute(
            update(RecipientGate)
            .where(RecipientGate.recipient == given.c.recipient)
            # Nobody may wait there for a moment: who is just being cancelled has no priority left.
            .values(
                opens_at=given.c.opens_at,
                priority=func.coalesce(_BEST, RecipientGate.priority),
                **_policy(limit),
            )
            .execution_options(synchronize_session=False)
        )

    def close_deserted(self, recipients: Collection[str]) -> int:
        """Remove the gates of locked recipients at which nobody waits, and say how many."""
        listed = bindparam("recipients", list(recipients), ARRAY(Text))
        closed = self._session.scalars(
            delete(RecipientGate)
            .where(RecipientGate.recipient == any_(listed), _BEST.is_(None))
            .returning(RecipientGate.recipient)
            .execution_options(synchronize_session=False)
        )
        return len(closed.all())

    def set_under_another(self, limit: RateLimit, count: int) -> list[str]:
        """Up to ``count`` recipients whose gates were set under another limit than this one."""
        policy = tuple_(RecipientGate.max_notifications, RecipientGate.window_seconds)
        in_force = tuple_(*_policy(limit).values())
        # Two ranges of an index: an inequality would read every gate.
        others = [
            select(RecipientGate.recipient).where(other).limit(count).subquery()
            for other in (policy < in_force, policy > in_force)
        ]
        return list(
            self._session.scalars(union_all(*(select(each) for each in others)).limit(count))
        )

    def open_now(self, recipients: Collection[str], limit: RateLimit) -> None:
        """Have the gates of locked recipients looked at at once."""
        listed = bindparam("recipients", list(recipients), ARRAY(Text))
        self._session.execute(
            update(RecipientGate)
            .where(RecipientGate.recipient == any_(listed))
            .values(opens_at=func.now(), **_policy(limit))
            .execution_options(synchronize_session=False)
        )

    def some(self, count: int) -> list[str]:
        """Up to ``count`` recipients that have a gate."""
        return list(self._session.scalars(select(RecipientGate.recipient).limit(count)))

    def lock_some_parked(self, count: int) -> list[UUID]:
        """Lock up to ``count`` parked jobs, whosever they are."""
        parked = (
            select(QueueEntry.job_id)
            .where(QueueEntry.gate.is_not(None))
            .limit(count)
            .with_for_update(skip_locked=True)
        )
        return list(self._session.scalars(parked))


def _policy(limit: RateLimit) -> dict[str, int]:
    """The limit as a gate has it."""
    return {
        "max_notifications": limit.most,
        "window_seconds": round(limit.window.total_seconds()),
    }
