"""Where the jobs of a recipient wait whose slots are all taken.

A gate is written only under its recipient's advisory lock, so nobody ever waits for its row.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    CompoundSelect,
    DateTime,
    Integer,
    Select,
    SmallInteger,
    Text,
    Update,
    all_,
    any_,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningDelete

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority
from notify_queue.domain.rate_limit import Gate, RateLimit
from notify_queue.persistence.arrays import PLAIN_INSERT, rows_of
from notify_queue.persistence.candidates import BEST_FIRST, has_aged
from notify_queue.persistence.models import QueueEntry, RecipientGate

_POLICY: Final = ("max_notifications", "window_seconds")
_INSTANT: Final = DateTime(timezone=True)
# The priority of the best job that waits at a gate. One probe of that index also to see whether
# there is any: as an EXISTS it could become a join that reads all of them.
_BEST = (
    select(QueueEntry.priority)
    .where(QueueEntry.gate == RecipientGate.recipient)
    .order_by(*BEST_FIRST)
    .limit(1)
    .scalar_subquery()
)


class Gates:
    """Makes, opens, moves and closes gates."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def due(
        self, limit: int, aging_after: timedelta, but_not_to: Collection[str] = ()
    ) -> list[Gate]:
        """Up to ``limit`` gates of each priority that may be open, the longest open first.

        None of the recipients ``but_not_to``. Takes no lock: whoever wants to do something with a
        gate locks its recipient.
        """
        given = {"limit": limit, "aging_after": aging_after, "but_not_to": list(but_not_to)}
        return [
            Gate(row.recipient, Priority(row.priority), row.opens_at, row.aged)
            for row in self._session.execute(_due(), given)
        ]

    def seconds_until_next(self) -> float | None:
        """How long until the next gate may open, or None when there is none.

        Reads on from where ``due`` stopped, at the same ``now()``.
        """
        until: Any = self._session.scalar(_seconds_until_next())
        return None if until is None else float(until)

    def make(
        self, refused: Sequence[Candidate], opens_at: Mapping[str, datetime], limit: RateLimit
    ) -> None:
        """Make gates for the recipients of refused jobs, where there are none yet.

        They come before the jobs that are to wait there, which the queue would not take otherwise.
        """
        best: dict[str, int] = {}
        for candidate in refused:
            best[candidate.recipient] = max(best.get(candidate.recipient, 0), candidate.priority)
        self._session.execute(
            _make(),
            {
                "given_recipient": list(best),
                "given_opens_at": [opens_at[recipient] for recipient in best],
                "given_priority": list(best.values()),
                **_policy(limit),
            },
        )

    def settle(self, opens_at: Mapping[str, datetime], limit: RateLimit) -> set[str]:
        """Close the gates at which nobody waits any more, and say of the others when they open.

        Returns the recipients whose gates were closed.
        """
        closed = self.close_deserted(opens_at)
        given = {
            "given_recipient": list(opens_at),
            "given_opens_at": list(opens_at.values()),
            **_policy(limit),
        }
        self._session.execute(_move(), given)
        return closed

    def close_deserted(self, recipients: Collection[str]) -> set[str]:
        """Remove the gates of locked recipients at which nobody waits, and say whose they were."""
        return set(self._session.scalars(_close_deserted(), {"recipients": list(recipients)}))

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
        """Have the gates of locked recipients looked at at once, under this limit from now on."""
        self._open(recipients, **_policy(limit))

    def look_again(self, recipients: Collection[str]) -> None:
        """Have the gates of locked recipients looked at at once: a slot was given back."""
        self._open(recipients)

    def _open(self, recipients: Collection[str], **changes: int) -> None:
        self._session.execute(
            update(RecipientGate)
            .where(RecipientGate.recipient.in_(recipients))
            .values(opens_at=func.now(), **changes)
            .execution_options(synchronize_session=False)
        )

    def some(self, count: int) -> list[str]:
        """Up to ``count`` recipients that have a gate."""
        return list(self._session.scalars(select(RecipientGate.recipient).limit(count)))


def _policy(limit: RateLimit) -> dict[str, int]:
    """The limit as a gate has it."""
    return dict(zip(_POLICY, (limit.most, round(limit.window.total_seconds())), strict=True))


# Built once: putting a statement together takes as long as running it.
@cache
def _due() -> CompoundSelect[Any]:
    lanes = [
        select(
            RecipientGate.recipient,
            RecipientGate.priority,
            RecipientGate.opens_at,
            has_aged(RecipientGate.priority, RecipientGate.opens_at).label("aged"),
        )
        .where(RecipientGate.priority == priority, RecipientGate.opens_at <= func.now())
        .where(RecipientGate.recipient != all_(bindparam("but_not_to", type_=ARRAY(Text))))
        .order_by(RecipientGate.opens_at)
        .limit(bindparam("limit", type_=Integer))
        .subquery()
        for priority in Priority
    ]
    return union_all(*(select(lane) for lane in lanes))


@cache
def _seconds_until_next() -> Select[Any]:
    firsts = [
        select(RecipientGate.opens_at)
        .where(RecipientGate.priority == priority, RecipientGate.opens_at > func.now())
        .order_by(RecipientGate.opens_at)
        .limit(1)
        .subquery()
        for priority in Priority
    ]
    opens_at = union_all(*(select(first.c.opens_at) for first in firsts)).subquery().c.opens_at
    return select(func.extract("epoch", func.min(opens_at) - func.clock_timestamp()))


@cache
def _make() -> Insert:
    gates = rows_of({"recipient": Text, "opens_at": _INSTANT, "priority": SmallInteger})
    policy = [bindparam(name, type_=Integer) for name in _POLICY]
    return (
        insert(RecipientGate)
        .from_select(["recipient", "opens_at", "priority", *_POLICY], select(*gates.c, *policy))
        .on_conflict_do_nothing()
        .execution_options(**PLAIN_INSERT)
    )


@cache
def _move() -> Update:
    given = rows_of({"recipient": Text, "opens_at": _INSTANT})
    return (
        update(RecipientGate)
        .where(RecipientGate.recipient == given.c.recipient)
        # Nobody may wait there for a moment: who is just being cancelled has no priority left.
        .values(
            opens_at=given.c.opens_at,
            priority=func.coalesce(_BEST, RecipientGate.priority),
            **{name: bindparam(name, type_=Integer) for name in _POLICY},
        )
        .execution_options(synchronize_session=False)
    )


@cache
def _close_deserted() -> ReturningDelete[str]:
    recipients = any_(bindparam("recipients", type_=ARRAY(Text)))
    return (
        delete(RecipientGate)
        .where(RecipientGate.recipient == recipients, _BEST.is_(None))
        .returning(RecipientGate.recipient)
        .execution_options(synchronize_session=False)
    )
