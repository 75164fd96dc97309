"""The legal moves of a job, as conditions on rows.

Every statement that moves a job takes its condition from here, and so from the one table in
``notify_queue.domain.lifecycle``: a move that the table does not have matches no row.
"""

from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from sqlalchemy import ColumnElement, false, or_

from notify_queue.domain.lifecycle import LIVE, Status
from notify_queue.persistence.models import NotificationJob, QueueEntry

# How a live status looks in the queue; an ended one has no entry there.
_ENTRY: Final = MappingProxyType(
    {
        Status.PENDING: QueueEntry.claim_token.is_(None),
        Status.PROCESSING: QueueEntry.claim_token.is_not(None),
    }
)


def entry_is(statuses: Collection[Status]) -> ColumnElement[bool]:
    """The queue entry's job stands in one of these live statuses."""
    # No status is no row; an empty OR would be no condition.
    return or_(false(), *(_ENTRY[status] for status in statuses))


def outcome_is(statuses: Collection[Status]) -> ColumnElement[bool]:
    """The ledger's job has ended in one of these statuses.

    Raises:
        ValueError: one of them is no end.
    """
    ended = [status.value for status in statuses if status not in LIVE]
    if len(ended) < len(statuses):
        raise ValueError("a live job has no outcome")
    return NotificationJob.outcome.in_(ended)
