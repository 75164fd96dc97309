"""Webhook events that were given up are put back to work."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, null, select, true, update
from sqlalchemy.orm import Session

from notify_queue.domain.redrive import GivenUpEvents
from notify_queue.persistence.models import OutboxEvent


class Revival:
    """Lists, counts and revives given-up events."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def lock(self, selection: GivenUpEvents, limit: int) -> list[UUID]:
        """Lock and list up to ``limit`` of the selected events, given up longest ago first.

        Rows that somebody else has locked are passed over; the locks last until the transaction
        ends.
        """
        listed = (
            select(OutboxEvent.id)
            .where(_is_selected(selection))
            .order_by(OutboxEvent.failed_at, OutboxEvent.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return list(self._session.scalars(listed))

    def revive(self, event_ids: Sequence[UUID]) -> None:
        """Give locked events a fresh budget, due now. Their attempts go on being counted."""
        self._session.execute(
            update(OutboxEvent)
            .where(OutboxEvent.id.in_(event_ids))
            .values(
                failed_at=null(),
                forgiven_attempts=OutboxEvent.dispatch_attempts,
                next_attempt_at=func.now(),
            )
            .execution_options(synchronize_session=False)
        )

    def count(self, selection: GivenUpEvents) -> int:
        """How many events are selected now. Takes no lock."""
        counted = select(func.count()).where(_is_selected(selection))
        return self._session.scalar(counted.select_from(OutboxEvent)) or 0


def _is_selected(selection: GivenUpEvents) -> ColumnElement[bool]:
    since, before = selection.since, selection.before
    return and_(
        OutboxEvent.failed_at.is_not(None),
        true() if since is None else OutboxEvent.failed_at >= since,
        true() if before is None else OutboxEvent.failed_at < before,
    )
