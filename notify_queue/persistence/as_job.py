"""From rows to jobs: of the overview, or of a statement that has just written the ledger."""

from dataclasses import fields
from typing import Any, Final

from sqlalchemy import ColumnElement, SQLColumnExpression, literal, null

from notify_queue.domain.job import Channel, Job, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.persistence.models import NotificationJob

_NAMES: Final = [field.name for field in fields(Job)]
_PLAIN: Final = [name for name in _NAMES if name not in {"channel", "priority", "status"}]
# What the ledger has no column for; NULL unless a statement knows better.
_DERIVED: Final = [name for name in _NAMES if name not in NotificationJob.__table__.columns]


def as_job(row: Any) -> Job:
    """Turn a row into a job; it has an attribute for each of the job's."""
    return Job(
        channel=Channel(row.channel),
        priority=Priority(row.priority),
        status=Status(row.status),
        **{name: getattr(row, name) for name in _PLAIN},
    )


def written_columns(
    status: Status, **derived: SQLColumnExpression[Any]
) -> list[ColumnElement[Any]]:
    """What a write to the ledger returns so that the row it wrote becomes a job.

    The answer to a write is that row and no later read: a worker may have the job by then.
    """
    known = {"status": literal(status.value), **derived}
    return [
        known.get(name, null()).label(name)
        if name in _DERIVED
        else getattr(NotificationJob, name).label(name)
        for name in _NAMES
    ]
