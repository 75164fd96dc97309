"""From rows of the queue to candidates for a claim."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Interval, and_, bindparam, func

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority
from notify_queue.persistence.models import QueueEntry

# Since when something must be due to have aged; ``aging_after`` is given at the execution.
AGED_SINCE: Final = func.now() - bindparam("aging_after", type_=Interval)


def has_aged(priority: Any, due_at: Any) -> ColumnElement[bool]:
    """Whether higher priorities have kept something waiting for too long."""
    return and_(priority < max(Priority), due_at <= AGED_SINCE)


# What a candidate is made of.
CANDIDATE: Final[list[Any]] = [
    QueueEntry.job_id,
    QueueEntry.recipient,
    QueueEntry.priority,
    QueueEntry.due_at,
    QueueEntry.attempt_count,
    QueueEntry.reconciliation_granted,
    QueueEntry.rate_limited,
    has_aged(QueueEntry.priority, QueueEntry.due_at).label("aged"),
]
# Best priority and longest due first, as idx_job_queue_parked has it.
BEST_FIRST: Final = (QueueEntry.priority.desc(), QueueEntry.due_at)


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
