"""Jobs page by page, newest first (docs/decisions/0010).

Each status has its own order in an index of its own, with and without the recipient in front. A
page is one short range of each status that is wanted, and nothing that is not shown is read.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, func, select, true, tuple_, union_all
from sqlalchemy.orm import InstrumentedAttribute, Session

from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.page import Filter, Place
from notify_queue.persistence.as_job import as_job
from notify_queue.persistence.models import (
    JobOverview,
    NotificationJob,
    QueueEntry,
    SentJob,
    SigningKey,
)

# The order is in the index. A planner with old statistics may think that few rows match, and read
# and sort all of them.
_OTHER_WAYS: Final = ("enable_seqscan", "enable_bitmapscan")


@dataclass(frozen=True, slots=True)
class _Order:
    """Where the jobs of one status stand in order."""

    created_at: InstrumentedAttribute[Any]
    job_id: InstrumentedAttribute[UUID]
    recipient: InstrumentedAttribute[str]
    holds: ColumnElement[bool]

    def newest(self, recipient: str | None, after: Place | None, limit: int) -> Select[Any]:
        """The first jobs strictly below ``after``."""
        found = select(self.created_at, self.job_id.label("job_id")).where(self.holds)
        if recipient is not None:
            found = found.where(self.recipient == recipient)
        if after is not None:
            # A comparison of rows: both columns bound the range, to the microsecond.
            place = tuple_(after.created_at, after.job_id)
            found = found.where(tuple_(self.created_at, self.job_id) < place)
        return found.order_by(self.created_at.desc(), self.job_id.desc()).limit(limit)


def _live(claimed: int) -> _Order:
    # As idx_job_queue_live and idx_job_queue_recipient have it. A number, because the planner turns
    # a comparison of booleans into a test that no index can answer.
    holds = func.num_nonnulls(QueueEntry.claim_token) == claimed
    return _Order(QueueEntry.created_at, QueueEntry.job_id, QueueEntry.recipient, holds)


def _unsent(status: Status) -> _Order:
    job = NotificationJob
    return _Order(job.created_at, job.id, job.recipient, job.unsent_outcome == status.value)


_ORDERS: Final = {
    Status.PENDING: _live(claimed=0),
    Status.PROCESSING: _live(claimed=1),
    Status.SENT: _Order(SentJob.created_at, SentJob.job_id, SentJob.recipient, true()),
    Status.FAILED: _unsent(Status.FAILED),
    Status.DEAD_LETTERED: _unsent(Status.DEAD_LETTERED),
    Status.CANCELLED: _unsent(Status.CANCELLED),
}


class Listing:
    """Reads pages of jobs. Takes no lock."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def page(self, wanted: Filter, after: Place | None, limit: int) -> list[Job]:
        """Up to ``limit`` jobs strictly below ``after`` in the order (created_at, id).

        One statement and so one moment: a job is in exactly one of the orders, and what is listed
        by a status also shows it.
        """
        self._session.execute(select(*(func.set_config(way, "off", true()) for way in _OTHER_WAYS)))
        statuses = list(Status) if wanted.status is None else [wanted.status]
        newest = [
            select(_ORDERS[status].newest(wanted.recipient, after, limit).subquery())
            for status in statuses
        ]
        merged = union_all(*newest).subquery()
        page = (
            select(merged.c.job_id)
            .order_by(merged.c.created_at.desc(), merged.c.job_id.desc())
            .limit(limit)
            .cte("page")
            .prefix_with("MATERIALIZED")
        )
        rows = self._session.scalars(
            select(JobOverview)
            .where(JobOverview.id.in_(select(page.c.job_id)))
            .order_by(JobOverview.created_at.desc(), JobOverview.id.desc())
        )
        return [as_job(row) for row in rows]

    def cursor_key(self) -> bytes:
        """The key that cursors are signed with; all processes share it."""
        key = select(SigningKey.key).where(SigningKey.purpose == "cursor")
        return self._session.scalars(key).one()
