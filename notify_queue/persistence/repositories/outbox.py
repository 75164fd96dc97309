"""Webhook events are handed out, each to one worker.

The same two steps as in claiming jobs: one statement locks and lists, another writes exactly what
was listed. An event is leased, not locked, while its POST is on the way.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Interval,
    Select,
    Text,
    Update,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.webhook_event import (
    Dispatch,
    DueEvent,
    WebhookEvent,
)
from notify_queue.persistence.arrays import rows_of
from notify_queue.persistence.models import OutboxEvent

# As the partial index idx_webhook_events_due says it, to the letter.
_WAITS: ColumnElement[bool] = and_(
    OutboxEvent.delivered_at.is_(None), OutboxEvent.failed_at.is_(None)
)
# How many due events are looked through for the lease that ends first. The longest due come first,
# and they were leased first.
_MOST_LEASED: Final = 1000
# Until the next look at a due event whose row somebody held.
_HELD: Final = timedelta(seconds=1)


class Outbox:
    """Hands out events, and ends those that have no attempt left."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def lock_due(self, limit: int) -> list[DueEvent]:
        """Lock up to ``limit`` due events, the longest due first, none that is leased.

        Rows that somebody else has locked are passed over, so no worker waits for another. The
        locks last until the transaction ends, which is milliseconds.
        """
        return [
            DueEvent(
                event=WebhookEvent(
                    event_id=row.id,
                    job_id=row.job_id,
                    status=Status(row.status),
                    attempt_count=row.attempt_count,
                    redrive_count=row.redrive_count,
                    occurred_at=row.occurred_at,
                ),
                attempts=row.dispatch_attempts,
                forgiven=row.forgiven_attempts,
                lost=row.leased_until is not None,
                last_error=row.last_error,
            )
            for row in self._session.execute(_lock_due(), {"limit": limit})
        ]

    def take(self, locked: Sequence[DueEvent], lease: timedelta) -> list[Dispatch]:
        """Lease exactly these locked events and count the attempts.

        The lease begins now, by the clock and not by the transaction's start.
        """
        due = {each.event.event_id: each for each in locked}
        rows = self._session.execute(_take(), {"event_ids": list(due), "lease": lease})
        return [
            Dispatch(
                event=due[row.id].event,
                attempt=row.dispatch_attempts,
                spent=row.dispatch_attempts - due[row.id].forgiven,
                taken_at=row.taken_at,
            )
            for row in rows
        ]

    def give_up(self, locked: Sequence[tuple[UUID, str | None]]) -> None:
        """End locked events that have no attempt left, each with its last error."""
        self._session.execute(
            _give_up(),
            {
                "given_event_id": [event_id for event_id, _ in locked],
                "given_error": [error for _, error in locked],
            },
        )

    def seconds_until_next(self) -> float | None:
        """How long until the next event may be taken, or None when none waits.

        It is not due yet; or it is leased, and the lease may end without a result; or it is due,
        and somebody held its row when it was passed over.
        """
        until: Any = self._session.scalar(_seconds_until_next())
        return None if until is None else float(until)


# Built once: putting a statement together takes as long as running it.
@cache
def _lock_due() -> Select[*tuple[Any, ...]]:
    return (
        select(
            OutboxEvent.id,
            OutboxEvent.job_id,
            OutboxEvent.status,
            OutboxEvent.attempt_count,
            OutboxEvent.redrive_count,
            OutboxEvent.occurred_at,
            OutboxEvent.dispatch_attempts,
            OutboxEvent.forgiven_attempts,
            OutboxEvent.leased_until,
            OutboxEvent.last_error,
        )
        .where(_WAITS, OutboxEvent.next_attempt_at <= func.now())
        # Leased events stay in the index, and there are never more than the workers have sent off.
        .where(or_(OutboxEvent.leased_until.is_(None), OutboxEvent.leased_until <= func.now()))
        .order_by(OutboxEvent.next_attempt_at)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(skip_locked=True)
    )


@cache
def _take() -> Update:
    return (
        update(OutboxEvent)
        .where(OutboxEvent.id == _listed())
        .values(
            dispatch_attempts=OutboxEvent.dispatch_attempts + 1,
            leased_until=func.clock_timestamp() + bindparam("lease", type_=Interval),
        )
        .returning(
            OutboxEvent.id,
            OutboxEvent.dispatch_attempts,
            func.clock_timestamp().label("taken_at"),
        )
        .execution_options(synchronize_session=False)
    )


@cache
def _give_up() -> Update:
    given = rows_of({"event_id": Uuid, "error": Text})
    return (
        update(OutboxEvent)
        .where(OutboxEvent.id == given.c.event_id)
        .values(failed_at=func.now(), last_error=given.c.error, leased_until=null())
        .execution_options(synchronize_session=False)
    )


@cache
def _seconds_until_next() -> Select[Any]:
    due = (
        select(OutboxEvent.next_attempt_at)
        .where(_WAITS, OutboxEvent.next_attempt_at > func.now())
        .order_by(OutboxEvent.next_attempt_at)
        .limit(1)
        .scalar_subquery()
    )
    passed_over = (
        select(OutboxEvent.leased_until)
        .where(_WAITS, OutboxEvent.next_attempt_at <= func.now())
        .order_by(OutboxEvent.next_attempt_at)
        .limit(_MOST_LEASED)
        .subquery()
    )
    leased_until = passed_over.c.leased_until
    let_go = case((leased_until > func.now(), leased_until), else_=func.now() + _HELD)
    again = select(func.min(let_go)).scalar_subquery()
    # The least of those that there are.
    return select(func.extract("epoch", func.least(due, again) - func.clock_timestamp()))


def _listed() -> ColumnElement[Any]:
    return any_(bindparam("event_ids", type_=ARRAY(Uuid)))
