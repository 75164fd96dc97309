"""Attempts at webhook events, taken and recorded as a worker does it."""

from uuid import UUID

from notify_queue.domain.webhook_event import Answered, Dispatch, Posted, Verdict
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.webhooks.take import TakeDueEvents

LEASE_S = 10
MOST = 3


def take(unit_of_work: UnitOfWorkFactory, limit: int = 100) -> list[Dispatch]:
    """Take due events; each has a budget of :data:`MOST` attempts."""
    return TakeDueEvents(unit_of_work, LEASE_S, MOST)(limit).dispatches


def taken(dispatches: list[Dispatch]) -> set[UUID]:
    """Which events were taken."""
    return {dispatch.event.event_id for dispatch in dispatches}


def record(
    unit_of_work: UnitOfWorkFactory, dispatches: list[Dispatch], *verdicts: Verdict
) -> list[bool | None]:
    """Record one verdict for each, or the same for all."""
    each_one = verdicts if len(verdicts) > 1 else verdicts * len(dispatches)
    with unit_of_work() as unit:
        written = unit.webhook_results.record(
            [
                Posted(each, Answered(0), verdict)
                for each, verdict in zip(dispatches, each_one, strict=True)
            ]
        )
        unit.commit()
    return written
