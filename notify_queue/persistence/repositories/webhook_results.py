"""What attempts at webhook events came to, recorded in batches and fenced by their numbers."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import assert_never
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Boolean,
    Integer,
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

from notify_queue.domain.webhook_event import GivenUp, Posted, Received, TryAgain, Verdict
from notify_queue.persistence.arrays import rows_of
from notify_queue.persistence.models import OutboxEvent


class WebhookResults:
    """Records finished attempts."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def record(self, posted: Sequence[Posted]) -> list[bool | None]:
        """Write what attempts came to, and say of each whether it was written.

        A failure counts only for the attempt that stands: the number fences it. That the receiver
        has the event is true whoever finds out, also after it was given up.

        Rows that somebody else has locked are passed over, and the answer is None: one operator's
        open transaction must not hold up what was learned about all the others.
        """
        event_ids = [each.dispatch.event.event_id for each in posted]
        ours = set(self._session.scalars(_lock(), {"event_ids": event_ids}))
        held = self._existing(set(event_ids) - ours)
        telling = _one_of_each_event(
            each for each in posted if each.dispatch.event.event_id in ours
        )
        written = self._write(list(telling.values())) if telling else set()
        return [
            None if event_id in held else event_id in written and telling[event_id] is each
            for event_id, each in zip(event_ids, posted, strict=True)
        ]

    def _existing(self, event_ids: set[UUID]) -> set[UUID]:
        """Tell those that are locked from those that went with their job. Takes no lock."""
        if not event_ids:
            return set()
        existing = select(OutboxEvent.id).where(OutboxEvent.id.in_(event_ids))
        return set(self._session.scalars(existing))

    def _write(self, posted: Sequence[Posted]) -> set[UUID]:
        received, delays_ms, errors = zip(*(_columns(each.verdict) for each in posted), strict=True)
        given = {
            "given_event_id": [each.dispatch.event.event_id for each in posted],
            "given_attempt": [each.dispatch.attempt for each in posted],
            "given_received": list(received),
            "given_delay_ms": list(delays_ms),
            "given_error": list(errors),
        }
        return set(self._session.scalars(_record(), given))


def _one_of_each_event(posted: Iterable[Posted]) -> dict[UUID, Posted]:
    """Pick the result that counts where attempts at one event ended together.

    An UPDATE that meets two rows for one of its own takes either.
    """
    telling: dict[UUID, Posted] = {}
    for each in sorted(posted, key=_weight):
        telling[each.dispatch.event.event_id] = each
    return telling


def _weight(posted: Posted) -> tuple[bool, int]:
    return isinstance(posted.verdict, Received), posted.dispatch.attempt


def _columns(verdict: Verdict) -> tuple[bool, int | None, str | None]:
    """Whether the event was received, the delay in ms until the next attempt, the error."""
    match verdict:
        case Received():
            return True, None, None
        case TryAgain(delay_ms, error):
            return False, delay_ms, error
        case GivenUp(error):
            return False, None, error
        case _:
            assert_never(verdict)


# Built once: putting a statement together takes as long as running it.
@cache
def _lock() -> Select[UUID]:
    listed = any_(bindparam("event_ids", type_=ARRAY(Uuid)))
    return select(OutboxEvent.id).where(OutboxEvent.id == listed).with_for_update(skip_locked=True)


@cache
def _record() -> Update:
    given = rows_of(
        {
            "event_id": Uuid,
            "attempt": Integer,
            "received": Boolean,
            "delay_ms": Integer,
            "error": Text,
        }
    )
    again = given.c.delay_ms.is_not(None)
    delay = given.c.delay_ms * func.make_interval(0, 0, 0, 0, 0, 0, 0.001)
    stands = and_(
        OutboxEvent.dispatch_attempts == given.c.attempt,
        # Not one from before an operator revived the event: its budget is a new one.
        OutboxEvent.forgiven_attempts < given.c.attempt,
        OutboxEvent.failed_at.is_(None),
    )
    return (
        update(OutboxEvent)
        .where(OutboxEvent.id == given.c.event_id, OutboxEvent.delivered_at.is_(None))
        .where(or_(given.c.received, stands))
        .values(
            delivered_at=case((given.c.received, func.now())),
            failed_at=case((given.c.received, null()), (again, null()), else_=func.now()),
            next_attempt_at=case(
                (again, func.clock_timestamp() + delay), else_=OutboxEvent.next_attempt_at
            ),
            last_error=given.c.error,
            leased_until=null(),
        )
        .returning(OutboxEvent.id)
        .execution_options(synchronize_session=False)
    )
