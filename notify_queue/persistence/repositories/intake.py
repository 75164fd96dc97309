"""Jobs come in: once per idempotency key."""

from typing import Any, cast

from sqlalchemy import ColumnElement, func, insert, literal, select
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.orm import Session

from notify_queue.domain.job import Channel, Job, NewJob, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.persistence.models import NotificationJob, QueueEntry


class Intake:
    """Writes new jobs."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def insert(self, new: NewJob) -> tuple[Job, float] | None:
        """Write the job and its queue entry, or nothing when the idempotency key is taken.

        Returns the job as written and the seconds until it is due (negative for the past), or
        None. The unique constraint decides between callers that race: the later one waits for the
        earlier to commit, then inserts nothing. There is no read before the write to be outdated.
        """
        job = (
            pg_insert(NotificationJob)
            .values(
                id=new.id,
                idempotency_key=new.request.idempotency_key,
                request_fingerprint=new.fingerprint,
                recipient=new.request.recipient,
                channel=new.request.channel,
                payload=new.request.payload,
                priority=new.request.priority,
                scheduled_at=_due(new),
                max_attempts=new.max_attempts,
            )
            .on_conflict_do_nothing(constraint="uq_notification_jobs_idempotency_key")
            .returning(
                NotificationJob.id,
                NotificationJob.priority,
                NotificationJob.scheduled_at,
                NotificationJob.recipient,
                NotificationJob.max_attempts,
                NotificationJob.created_at,
            )
            .cte("job")
        )
        # One statement for both rows: a job without its entry would never be delivered.
        entry = (
            insert(QueueEntry)
            .from_select(
                ["job_id", "priority", "due_at", "recipient", "max_attempts", "created_at"],
                select(
                    job.c.id,
                    job.c.priority,
                    job.c.scheduled_at,
                    job.c.recipient,
                    job.c.max_attempts,
                    job.c.created_at,
                ),
            )
            .cte("entry")
        )
        due_in = func.extract("epoch", job.c.scheduled_at - func.now())
        written = self._session.execute(
            select(job.c.scheduled_at, job.c.created_at, due_in.label("due_in")).add_cte(entry)
        ).one_or_none()
        return None if written is None else (_as_written(new, written), float(written.due_in))


def _due(new: NewJob) -> ColumnElement[Any]:
    """Delays count from the database's clock, the one that will decide what is due."""
    if new.request.send_at is not None:
        return literal(new.request.send_at, NotificationJob.scheduled_at.type)
    seconds = cast("int", new.request.delay_seconds)
    return func.now() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _as_written(new: NewJob, written: Any) -> Job:
    """The answer to a write is the row it wrote: a worker may have claimed the job by now."""
    return Job(
        id=new.id,
        idempotency_key=new.request.idempotency_key,
        recipient=new.request.recipient,
        channel=Channel(new.request.channel),
        priority=Priority(new.request.priority),
        status=Status.PENDING,
        scheduled_at=written.scheduled_at,
        next_attempt_at=written.scheduled_at,
        attempt_count=0,
        max_attempts=new.max_attempts,
        last_error=None,
        sent_at=None,
        failed_at=None,
        dead_lettered_at=None,
        cancelled_at=None,
        redrive_count=0,
        last_redriven_at=None,
        created_at=written.created_at,
        updated_at=written.created_at,
    )
