"""The example jobs are written, each once for ever."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    Boolean,
    ColumnElement,
    Integer,
    Interval,
    SmallInteger,
    String,
    TableValuedAlias,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as pg_insert
from sqlalchemy.orm import Session

from notify_queue.domain.examples import MAX_ATTEMPTS, Example
from notify_queue.domain.lifecycle import Status
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.models import JobOverview, NotificationJob, OutboxEvent, QueueEntry

# Between an event and its delivery.
_POST: Final = timedelta(milliseconds=50)


class Seeding:
    """Writes examples and looks at what has become of them."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def insert(self, examples: Sequence[tuple[UUID, Example]]) -> int:
        """Write those examples whose key is not taken, under these ids; returns how many.

        One statement, and queue entries and webhook events only for what it has inserted: what
        became of an earlier row, however it was redriven or delivered since, is not looked at and
        not touched.
        """
        given = _given(examples)
        job = (
            pg_insert(NotificationJob)
            .from_select(list(_ledger(given)), select(*_ledger(given).values()))
            .on_conflict_do_nothing(constraint="uq_notification_jobs_idempotency_key")
            .returning(
                NotificationJob.id,
                NotificationJob.priority,
                NotificationJob.recipient,
                NotificationJob.max_attempts,
                NotificationJob.created_at,
            )
            .cte("job")
        )
        entry = (
            insert(QueueEntry)
            .from_select(
                [
                    "job_id",
                    "priority",
                    "due_at",
                    "recipient",
                    "attempt_count",
                    "max_attempts",
                    "created_at",
                ],
                select(
                    job.c.id,
                    job.c.priority,
                    func.now() + given.c.due,
                    job.c.recipient,
                    given.c.attempts,
                    job.c.max_attempts,
                    job.c.created_at,
                )
                .join_from(job, given, job.c.id == given.c.id)
                .where(given.c.due.is_not(None)),
            )
            .cte("entry")
        )
        written = select(func.count()).select_from(job).add_cte(entry, _events(job, given))
        return self._session.scalar(written) or 0

    def statuses(self, keys: Sequence[str]) -> dict[Status, int]:
        """How many of the jobs with these keys stand in each status."""
        counted = (
            select(JobOverview.status, func.count())
            .where(JobOverview.idempotency_key.in_(keys))
            .group_by(JobOverview.status)
        )
        return {Status(status): jobs for status, jobs in self._session.execute(counted)}


def _events(job: CTE, given: TableValuedAlias) -> CTE:
    """Put events that have been delivered into the outbox, for jobs that have ended once."""
    occurred = func.now() + given.c.told_occurred
    columns: dict[str, Any] = {
        "id": given.c.event_id,
        "job_id": job.c.id,
        "status": given.c.told_status,
        "attempt_count": given.c.told_attempts,
        "occurred_at": occurred,
        "dispatch_attempts": cast(1, Integer),
        "next_attempt_at": occurred,
        "delivered_at": occurred + _POST,
        "created_at": occurred,
    }
    told = (
        select(*columns.values())
        .join_from(job, given, job.c.id == given.c.id)
        .where(given.c.told_status.is_not(None))
    )
    return insert(OutboxEvent).from_select(list(columns), told).cte("event")


def _given(examples: Sequence[tuple[UUID, Example]]) -> TableValuedAlias:
    """Turn the examples into rows; distances in time stay distances."""
    values = [example for _, example in examples]
    columns: dict[str, tuple[Any, list[Any]]] = {
        "id": (Uuid, [new_id for new_id, _ in examples]),
        "key": (String, [each.key for each in values]),
        "recipient": (String, [each.recipient for each in values]),
        "channel": (String, [each.channel.value for each in values]),
        "payload": (JSONB, [each.payload for each in values]),
        "priority": (SmallInteger, [each.priority.value for each in values]),
        "created": (Interval, [each.created for each in values]),
        "scheduled": (Interval, [each.scheduled for each in values]),
        "due": (Interval, [each.due for each in values]),
        "attempts": (Integer, [each.attempts for each in values]),
        "outcome": (String, [each.outcome and each.outcome.value for each in values]),
        "ended": (Interval, [each.ended for each in values]),
        "error": (Text, [each.error for each in values]),
        "redriven": (Boolean, [each.redriven for each in values]),
        "updated": (Interval, [each.updated for each in values]),
        "event_id": (Uuid, [new_id() for _ in values]),
        "told_status": (String, [each.told and each.told.status.value for each in values]),
        "told_occurred": (Interval, [each.told and each.told.occurred for each in values]),
        "told_attempts": (Integer, [each.told and each.told.attempts for each in values]),
    }
    return (
        func.unnest(*(bindparam(name, each, ARRAY(kind)) for name, (kind, each) in columns.items()))
        .table_valued(*(column(name, kind) for name, (kind, _) in columns.items()))
        .render_derived("given")
    )


def _ledger(given: TableValuedAlias) -> dict[str, ColumnElement[Any]]:
    """What stands in the ledger; the attempts of a live job stand in its queue entry alone."""
    over = given.c.outcome.is_not(None)
    return {
        "id": given.c.id,
        "idempotency_key": given.c.key,
        "recipient": given.c.recipient,
        "channel": given.c.channel,
        "payload": given.c.payload,
        "priority": given.c.priority,
        "scheduled_at": func.now() + given.c.scheduled,
        "outcome": given.c.outcome,
        "ended_at": func.now() + given.c.ended,
        "attempt_count": case((over, given.c.attempts), else_=0),
        "max_attempts": cast(MAX_ATTEMPTS, Integer),
        "last_error": given.c.error,
        "redrive_count": cast(given.c.redriven, Integer),
        "last_redriven_at": case((given.c.redriven, func.now())),
        "created_at": func.now() + given.c.created,
        "updated_at": func.now() + given.c.updated,
    }
