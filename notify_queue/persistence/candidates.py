"""From rows of the queue to candidates for a claim."""

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority
from notify_queue.persistence.models import QueueEntry


def candidate_columns(aging_after: timedelta | None = None) -> list[Any]:
    """What a candidate is made of; a lower priority ages in ``aging_after``, if at all."""
    aged: ColumnElement[bool] = false()
    if aging_after is not None:
        aged = has_aged(QueueEntry.priority, QueueEntry.due_at, aging_after)
    return [
        QueueEntry.job_id,
        QueueEntry.recipient,
        QueueEntry.priority,
        QueueEntry.due_at,
        QueueEntry.attempt_count,
        QueueEntry.reconciliation_granted,
        QueueEntry.rate_limited,
        aged.label("aged"),
    ]


def has_aged(priority: Any, due_at: Any, aging_after: timedelta) -> ColumnElement[bool]:
    """Whether higher priorities have kept something waiting for longer than ``aging_after``."""
    return and_(priority < max(Priority), due_at <= func.now() - aging_after)


def as_candidate(row: Any) -> Candidate:
    """Turn a row of those columns into a candidate."""
    return Candidate(
        job_id=row.job_id,
        recipient=row.recipient,
        priority=Priority(row.priority),
        due_at=row.due_at,
        attempt=row.attempt_count + 1,
        aged=row.aged,
        suspect=row.reconciliation_granted,
        parked=row.rate_limited,
    )
