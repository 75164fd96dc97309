"""Who has been called, and who is being called now: the recipients' locks and their slots.

Everything about a recipient is decided under its advisory lock, which is only ever tried: whoever
does not get it leaves the recipient to the other one, so nobody waits and nothing can deadlock
(docs/decisions/0013).
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    DateTime,
    Delete,
    Integer,
    Interval,
    Select,
    Text,
    Uuid,
    bindparam,
    cast,
    delete,
    func,
    literal,
    null,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.orm import Session

from notify_queue.domain.rate_limit import RateLimit, Slot, Standing
from notify_queue.persistence.arrays import PLAIN_INSERT, listed_jobs, rows_of
from notify_queue.persistence.fenced import take_slots
from notify_queue.persistence.models import (
    NotificationJob,
    QueueEntry,
    RecipientGate,
    Reservation,
)

# The first half of every recipient's lock. The second is the database's own hash of the recipient,
# the same for every process. Two recipients with one hash share a lock, which is harmless.
_LOCKS: Final = 7246001
# As idx_job_queue_recipient has it.
_CLAIMED: Final = func.num_nonnulls(QueueEntry.claim_token)


class Recipients:
    """Locks recipients, reads and writes their slots."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def try_lock(self, recipients: Collection[str]) -> set[str]:
        """Lock those whose lock is free and return them. The locks end with the transaction."""
        return set(self._session.scalars(_try_lock(), {"given_recipient": list(recipients)}))

    def look(self, recipients: Collection[str], limit: RateLimit) -> Standing:
        """Read what locked recipients hold.

        A statement of its own, after the one that took the locks: its snapshot shows what whoever
        held them before has committed. And one statement, so that an attempt that is recorded just
        now is seen as running or as ended.
        """
        rows = self._session.execute(
            _look(),
            {
                "given_recipient": list(recipients),
                "window": limit.window,
                # Of each kind and recipient one more than the limit is enough to decide.
                "some": limit.most + 1,
            },
        ).all()
        [now] = [row.at for row in rows if row.kind == "now"]
        return Standing(
            now=now,
            slots=[Slot(row.recipient, row.job_id, row.at) for row in rows if row.kind == "slot"],
            gated={row.recipient for row in rows if row.kind == "gate"},
        )

    def reserve(self, job_ids: Sequence[UUID], wait: timedelta) -> None:
        """Let jobs hold slots of their recipients that are to be tried within ``wait``."""
        self._session.execute(_reserve(), {"job_ids": list(job_ids), "wait": wait})

    def prune(self, window: timedelta, limit: int) -> int:
        """Delete up to ``limit`` reservations that count no more, the oldest first; say how many.

        Locked and listed first, then deleted, as ever; rows that somebody holds are passed over.
        """
        old = (
            select(Reservation.job_id)
            .where(Reservation.reserved_at <= func.now() - window)
            .order_by(Reservation.reserved_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        job_ids = list(self._session.scalars(old))
        if job_ids:
            self._session.execute(_forget(), {"job_ids": job_ids})
        return len(job_ids)


@cache
def _try_lock() -> Select[tuple[str]]:
    given = rows_of({"recipient": Text})
    free = func.pg_try_advisory_xact_lock(_LOCKS, func.hashtext(given.c.recipient))
    return select(given.c.recipient).where(free)


@cache
def _look() -> CompoundSelect[Any]:
    given = rows_of({"recipient": Text})
    some = bindparam("some", type_=Integer)
    running = (
        select(QueueEntry.job_id)
        # Bounds and an order, as the listings have them, so that no other index will do.
        .where(tuple_(QueueEntry.recipient, _CLAIMED) >= tuple_(given.c.recipient, 1))
        .where(tuple_(QueueEntry.recipient, _CLAIMED) <= tuple_(given.c.recipient, 1))
        .order_by(QueueEntry.recipient, _CLAIMED, QueueEntry.created_at, QueueEntry.job_id)
        .limit(some)
        .lateral("running")
    )
    ended = (
        select(Reservation.job_id, Reservation.reserved_at)
        .where(Reservation.recipient == given.c.recipient)
        .where(Reservation.reserved_at > func.now() - bindparam("window", type_=Interval))
        .order_by(Reservation.reserved_at.desc())
        .limit(some)
        .lateral("ended")
    )
    gate = RecipientGate.recipient == given.c.recipient
    never = cast(null(), DateTime(timezone=True))
    nobody = cast(null(), Uuid)
    return union_all(
        _seen("now", literal(""), nobody, func.now()),
        _seen("slot", given.c.recipient, running.c.job_id, never).join_from(given, running, true()),
        _seen("slot", given.c.recipient, ended.c.job_id, ended.c.reserved_at).join_from(
            given, ended, true()
        ),
        _seen("gate", given.c.recipient, nobody, never).join_from(given, RecipientGate, gate),
    )


def _seen(
    kind: str, recipient: Any, job_id: ColumnElement[Any], at: ColumnElement[Any]
) -> Select[Any]:
    return select(
        literal(kind).label("kind"),
        recipient.label("recipient"),
        job_id.label("job_id"),
        at.label("at"),
    )


@cache
def _reserve() -> Insert:
    until = func.clock_timestamp() + bindparam("wait", type_=Interval)
    waiting = select(NotificationJob.id, NotificationJob.recipient, until).where(
        NotificationJob.id == listed_jobs()
    )
    return take_slots(waiting).execution_options(**PLAIN_INSERT)


@cache
def _forget() -> Delete:
    return delete(Reservation).where(Reservation.job_id == listed_jobs())
