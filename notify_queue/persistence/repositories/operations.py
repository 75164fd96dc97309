"""What operators do to jobs: cancel one that waits, put ended ones back to work."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Uuid,
    any_,
    bindparam,
    delete,
    func,
    insert,
    null,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import Session

from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import CANCELLABLE, REDRIVABLE, Status
from notify_queue.domain.redrive import Selection
from notify_queue.persistence.as_job import as_job, written_columns
from notify_queue.persistence.guards import entry_is, outcome_is
from notify_queue.persistence.models import NotificationJob, QueueEntry


class Operations:
    """Cancels and redrives. Each write returns the jobs as it wrote them."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def cancel(self, job_id: UUID) -> Job | None:
        """Cancel the job if it waits; None if it does not, or is unknown.

        Waits for a worker that is just claiming the job or letting it go, which is milliseconds,
        and then looks at what that one has made of it. Deleting the entry is what keeps every
        worker off: claim and cancel want the same row, and only one of them gets it.
        """
        gone = (
            delete(QueueEntry)
            .where(QueueEntry.job_id == job_id, entry_is(CANCELLABLE))
            .returning(QueueEntry.job_id, QueueEntry.attempt_count, QueueEntry.max_attempts)
            .cte("gone")
        )
        cancelled = (
            update(NotificationJob)
            .where(NotificationJob.id == gone.c.job_id)
            .values(
                outcome=Status.CANCELLED.value,
                ended_at=func.now(),
                attempt_count=gone.c.attempt_count,
                max_attempts=gone.c.max_attempts,
                updated_at=func.now(),
            )
            .returning(*written_columns(Status.CANCELLED, cancelled_at=NotificationJob.ended_at))
            .execution_options(synchronize_session=False)
        )
        row = self._session.execute(cancelled).one_or_none()
        return None if row is None else as_job(row)

    def lock_redrivable(self, selection: Selection, limit: int) -> list[UUID]:
        """Lock up to ``limit`` of the selected jobs, oldest first, and list them.

        Rows that another call has locked are passed over: it is redriving them. Listing comes
        before writing for the same reason as in claiming: a locking select inside the update may be
        run once per row, and then the limit does not hold.
        """
        locked = (
            select(NotificationJob.id)
            .where(*_selected(selection))
            .order_by(*_in_order(selection))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return list(self._session.scalars(locked))

    def count_redrivable(self, selection: Selection) -> int:
        """How many jobs are selected. Takes no lock."""
        return self._session.scalar(select(func.count()).where(*_selected(selection))) or 0

    def redrive(self, job_ids: Sequence[UUID], max_attempts: int) -> list[Job]:
        """Put those of the jobs that have ended badly back into the queue, due now.

        Each starts a new generation with a fresh budget of ``max_attempts``. One statement writes
        ledger and queue: a job without its entry would never be delivered.
        """
        listed = bindparam("job_ids", job_ids, ARRAY(Uuid))
        back = (
            update(NotificationJob)
            .where(NotificationJob.id == any_(listed), outcome_is(REDRIVABLE))
            .values(
                outcome=null(),
                ended_at=null(),
                attempt_count=0,
                max_attempts=max_attempts,
                redrive_count=NotificationJob.redrive_count + 1,
                last_redriven_at=func.now(),
                updated_at=func.now(),
            )
            .returning(*written_columns(Status.PENDING, next_attempt_at=func.now()))
            .cte("back")
        )
        entry = (
            insert(QueueEntry)
            .from_select(
                ["job_id", "priority", "due_at", "recipient", "max_attempts", "created_at"],
                select(
                    back.c.id,
                    back.c.priority,
                    back.c.next_attempt_at,
                    back.c.recipient,
                    back.c.max_attempts,
                    back.c.created_at,
                ),
            )
            .cte("entry")
        )
        rows = self._session.execute(
            select(back).order_by(back.c.created_at, back.c.id).add_cte(entry)
        )
        return [as_job(row) for row in rows]


def _selected(selection: Selection) -> list[ColumnElement[bool]]:
    """As the partial indexes on bad outcomes have it; see ``_in_order`` for a recipient."""
    conditions: list[ColumnElement[bool]] = []
    held = tuple_(NotificationJob.recipient, NotificationJob.unsent_outcome)
    if selection.recipient is None:
        conditions.append(NotificationJob.unsent_outcome == selection.status.value)
    else:
        bound = tuple_(selection.recipient, selection.status.value)
        conditions += [NotificationJob.unsent_outcome.is_not(None), held <= bound]
        if selection.after is None:
            conditions.append(held >= bound)
    if selection.ended_since is not None:
        conditions.append(NotificationJob.ended_at >= selection.ended_since)
    if selection.ended_before is not None:
        conditions.append(NotificationJob.ended_at < selection.ended_before)
    if selection.after is not None:
        place = [selection.after.created_at, selection.after.job_id]
        if selection.recipient is not None:
            place = [selection.recipient, selection.status.value, *place]
        conditions.append(tuple_(*_in_order(selection)) > tuple_(*place))
    return conditions


def _in_order(selection: Selection) -> list[Any]:
    """Oldest first. A recipient is bounded and in the order, so that only its own index serves."""
    in_time = [NotificationJob.created_at, NotificationJob.id]
    if selection.recipient is None:
        return in_time
    return [NotificationJob.recipient, NotificationJob.unsent_outcome, *in_time]
