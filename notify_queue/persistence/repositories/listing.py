"""Jobs page by page, newest first (docs/decisions/0010).

Each status has its own order in an index of its own, with and without the recipient in front. A
page is one short range of each status that is wanted, and nothing that is not shown is read.
"""

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    and_,
    func,
    select,
    true,
    tuple_,
    union_all,
)
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
    """Where the jobs of one status stand in order; ``kind`` is a column and the status in it."""

    created_at: InstrumentedAttribute[Any]
    job_id: InstrumentedAttribute[UUID]
    recipient: InstrumentedAttribute[str]
    kind: tuple[SQLColumnExpression[Any], Any] | None = None
    # What the partial index of a recipient says, word for word.
    partial: ColumnElement[bool] = field(default_factory=true)

    def newest(self, recipient: str | None, after: Place | None, limit: int) -> Select[Any]:
        """The first jobs strictly below ``after``."""
        held = [self.kind] if self.kind else []
        ordered: list[Any] = [self.created_at, self.job_id]
        place: list[Any] = [after.created_at, after.job_id] if after else []
        found = select(self.created_at, self.job_id.label("job_id"))
        if recipient is None:
            found = found.where(*(column == value for column, value in held))
        else:
            # Bounds instead of equalities, and the held columns in the order: then no order but the
            # recipient's own serves. A planner that thinks a recipient common would take the order
            # of all, and might read past everybody else's jobs first.
            held.insert(0, (self.recipient, recipient))
            columns, values = [column for column, _ in held], [value for _, value in held]
            ordered = [*columns, *ordered]
            found = found.where(self.partial, tuple_(*columns) >= tuple_(*values))
            if after is None:
                found = found.where(tuple_(*columns) <= tuple_(*values))
            place = [*values, *place]
        if after is not None:
            # A comparison of rows: all columns bound the range, the time to the microsecond.
            found = found.where(tuple_(*ordered) < tuple_(*place))
        return found.order_by(*(column.desc() for column in ordered)).limit(limit)


def _live(claimed: int) -> _Order:
    # As idx_job_queue_live and idx_job_queue_recipient have it. A number, because the planner turns
    # a comparison of booleans into a test that no index can answer.
    kind = (func.num_nonnulls(QueueEntry.claim_token), claimed)
    return _Order(QueueEntry.created_at, QueueEntry.job_id, QueueEntry.recipient, kind)


def _unsent(status: Status) -> _Order:
    job = NotificationJob
    kind = (job.unsent_outcome, status.value)
    return _Order(job.created_at, job.id, job.recipient, kind, job.unsent_outcome.is_not(None))


_ORDERS: Final = {
    Status.PENDING: _live(claimed=0),
    Status.PROCESSING: _live(claimed=1),
    Status.SENT: _Order(SentJob.created_at, SentJob.job_id, SentJob.recipient),
    Status.FAILED: _unsent(Status.FAILED),
    Status.DEAD_LETTERED: _unsent(Status.DEAD_LETTERED),
    Status.CANCELLED: _unsent(Status.CANCELLED),
}


class Listing:
    """Reads pages of jobs. Takes no lock."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def page(
        self, wanted: Filter, after: Place | None, limit: int
    ) -> list[tuple[Place, Job | None]]:
        """Up to ``limit`` jobs strictly below ``after`` in the order (created_at, id).

        One statement and so one moment: a job is in exactly one of the orders, and what is listed
        by a status also shows it. A place without its job, which only a write past the triggers can
        leave behind, is a place all the same: the listing goes on after it.
        """
        self._session.execute(select(*(func.set_config(way, "off", true()) for way in _OTHER_WAYS)))
        statuses = list(Status) if wanted.status is None else [wanted.status]
        newest = [
            select(_ORDERS[status].newest(wanted.recipient, after, limit).subquery())
            for status in statuses
        ]
        merged = union_all(*newest).subquery()
        page = (
            select(merged.c.created_at, merged.c.job_id)
            .order_by(merged.c.created_at.desc(), merged.c.job_id.desc())
            .limit(limit)
            .cte("page")
            .prefix_with("MATERIALIZED")
        )
        its_job = and_(JobOverview.id == page.c.job_id, JobOverview.created_at == page.c.created_at)
        rows = self._session.execute(
            select(page.c.created_at, page.c.job_id, JobOverview)
            .join_from(page, JobOverview, its_job, isouter=True)
            .order_by(page.c.created_at.desc(), page.c.job_id.desc())
        )
        return [
            (Place(created_at, job_id), None if row is None else as_job(row))
            for created_at, job_id, row in rows
        ]

    def cursor_key(self) -> bytes:
        """The key that cursors are signed with; all processes share it."""
        key = select(SigningKey.key).where(SigningKey.purpose == "cursor")
        return self._session.scalars(key).one()
