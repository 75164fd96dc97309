"""Statements on claimed jobs, fed by arrays and fenced by the claim token.

A batch of one and a batch of five hundred are the same statement. A row whose token no longer
matches was claimed by somebody else meanwhile: it is left alone, and its absence from the answer
tells the late one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    TableValuedAlias,
    Text,
    Uuid,
    and_,
    delete,
    func,
    true,
    update,
)
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import ENDABLE, RETURNABLE
from notify_queue.persistence.arrays import rows_of
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import NotificationJob, QueueEntry


class Fence(Protocol):
    """What names a claim: the job and the token of who holds it."""

    @property
    def job_id(self) -> UUID:
        """The job."""
        ...

    @property
    def token(self) -> UUID:
        """The fencing token."""
        ...


def given_rows(
    fences: Sequence[Fence], columns: Mapping[str, tuple[Any, list[Any]]]
) -> TableValuedAlias:
    """Turn claims into rows of (job_id, claim_token, and the given columns of type and values)."""
    return rows_of(
        {
            "job_id": (Uuid, [fence.job_id for fence in fences]),
            "claim_token": (Uuid, [fence.token for fence in fences]),
            **columns,
        }
    )


def still_held(given: TableValuedAlias) -> ColumnElement[bool]:
    """The queue entry is still under the claim that the row names."""
    return and_(QueueEntry.job_id == given.c.job_id, QueueEntry.claim_token == given.c.claim_token)


def end_claimed(
    session: Session,
    ended: Sequence[tuple[Fence, Ended]],
    only_if: ColumnElement[bool] | None = None,
) -> set[UUID]:
    """Take jobs out of the queue and write their outcome into the ledger; return which.

    One statement: a job never stands in both tables as ended and live, or in neither.
    """
    if not ended:
        return set()
    given = given_rows(
        [fence for fence, _ in ended],
        {
            "outcome": (Text, [end.status.value for _, end in ended]),
            "error": (Text, [end.error for _, end in ended]),
        },
    )
    gone = (
        delete(QueueEntry)
        .where(still_held(given), entry_is(ENDABLE), true() if only_if is None else only_if)
        .returning(
            QueueEntry.job_id,
            QueueEntry.attempt_count,
            QueueEntry.max_attempts,
            given.c.outcome,
            given.c.error,
        )
        .cte("gone")
    )
    written = (
        update(NotificationJob)
        .where(NotificationJob.id == gone.c.job_id)
        .values(
            outcome=gone.c.outcome,
            ended_at=func.now(),
            attempt_count=gone.c.attempt_count,
            max_attempts=gone.c.max_attempts,
            last_error=gone.c.error,
            updated_at=func.now(),
        )
        .returning(NotificationJob.id)
        .execution_options(synchronize_session=False)
    )
    return set(session.scalars(written))


def requeue_claimed(
    session: Session,
    given: TableValuedAlias,
    changes: Mapping[str, Any],
    only_if: ColumnElement[bool] | None = None,
) -> set[UUID]:
    """Let go of claims, change their entries and note each row's ``error``; return which jobs."""
    waiting = (
        update(QueueEntry)
        .where(still_held(given), entry_is(RETURNABLE), true() if only_if is None else only_if)
        .values(claim_token=None, locked_by=None, locked_at=None, **changes)
        .returning(QueueEntry.job_id, given.c.error)
        .cte("waiting")
    )
    noted = (
        update(NotificationJob)
        .where(NotificationJob.id == waiting.c.job_id)
        .values(last_error=waiting.c.error, updated_at=func.now())
        .returning(NotificationJob.id)
        .execution_options(synchronize_session=False)
    )
    return set(session.scalars(noted))
