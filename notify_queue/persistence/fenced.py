"""Statements on claimed jobs, fed by arrays and fenced by the claim token.

A batch of one and a batch of five hundred are the same statement. A row whose token no longer
matches was claimed by somebody else meanwhile: it is left alone, and its absence from the answer
tells the late one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    TableValuedAlias,
    Text,
    Uuid,
    and_,
    delete,
    func,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import ENDABLE, RETURNABLE
from notify_queue.persistence.arrays import rows_of
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.models import NotificationJob, OutboxEvent, QueueEntry, Reservation

Written = TypeVar("Written", ReturningInsert[UUID], ReturningUpdate[UUID])


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
    rows: dict[str, tuple[Any, list[Any]]] = {
        "job_id": (Uuid, [fence.job_id for fence in fences]),
        "claim_token": (Uuid, [fence.token for fence in fences]),
        **columns,
    }
    return rows_of(
        {name: kind for name, (kind, _) in rows.items()},
        {name: values for name, (_, values) in rows.items()},
    )


def still_held(given: TableValuedAlias) -> ColumnElement[bool]:
    """The queue entry is still under the claim that the row names."""
    return and_(QueueEntry.job_id == given.c.job_id, QueueEntry.claim_token == given.c.claim_token)


def end_claimed(
    session: Session,
    ended: Sequence[tuple[Fence, Ended]],
    *,
    limited: bool,
    only_if: ColumnElement[bool] | None = None,
) -> set[UUID]:
    """Take jobs out of the queue, write their outcome and put their events into the outbox.

    Returns which. One statement: a job never stands in both tables as ended and live, or in
    neither, and none ends without its event. When recipients are ``limited``, it holds a slot from
    then on, and so did while it was claimed.
    """
    if not ended:
        return set()
    given = given_rows(
        [fence for fence, _ in ended],
        {
            "outcome": (Text, [end.status.value for _, end in ended]),
            "error": (Text, [end.error for _, end in ended]),
            "event_id": (Uuid, [new_id() for _ in ended]),
        },
    )
    gone = (
        delete(QueueEntry)
        .where(still_held(given), entry_is(ENDABLE), true() if only_if is None else only_if)
        .returning(
            QueueEntry.job_id,
            QueueEntry.attempt_count,
            QueueEntry.max_attempts,
            QueueEntry.recipient,
            given.c.outcome,
            given.c.error,
            given.c.event_id,
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
        .returning(
            gone.c.event_id,
            NotificationJob.id,
            NotificationJob.outcome,
            NotificationJob.attempt_count,
            NotificationJob.redrive_count,
            NotificationJob.ended_at,
        )
        .cte("written")
    )
    told = _tell(written)
    return set(session.scalars(_with_slots(told, gone) if limited else told))


def _tell(written: CTE) -> ReturningInsert[UUID]:
    """Put the events of jobs that have ended into the outbox."""
    columns = ["id", "job_id", "status", "attempt_count", "redrive_count", "occurred_at"]
    born = insert(OutboxEvent).from_select(columns, select(written))
    return born.returning(OutboxEvent.job_id)


def requeue_claimed(
    session: Session,
    given: TableValuedAlias,
    changes: Mapping[str, Any],
    *,
    limited: bool,
    only_if: ColumnElement[bool] | None = None,
) -> set[UUID]:
    """Let go of claims, change their entries and note each row's ``error``; return which jobs.

    An attempt is over here too, so when recipients are ``limited`` the job holds its slot anew.
    """
    waiting = (
        update(QueueEntry)
        .where(still_held(given), entry_is(RETURNABLE), true() if only_if is None else only_if)
        .values(claim_token=None, locked_by=None, locked_at=None, **changes)
        .returning(QueueEntry.job_id, QueueEntry.recipient, given.c.error)
        .cte("waiting")
    )
    noted = (
        update(NotificationJob)
        .where(NotificationJob.id == waiting.c.job_id)
        .values(last_error=waiting.c.error, updated_at=func.now())
        .returning(NotificationJob.id)
        .execution_options(synchronize_session=False)
    )
    return set(session.scalars(_with_slots(noted, waiting) if limited else noted))


def _with_slots(written: Written, let_go: CTE) -> Written:
    """Let jobs hold their recipients' slots in the statement that lets go of their claims.

    By the clock, as wherever a lock may have been waited for.
    """
    taken = take_slots(select(let_go.c.job_id, let_go.c.recipient, func.clock_timestamp()))
    return written.add_cte(taken.cte("taken"))


def take_slots(given: Select[Any]) -> Insert:
    """Let jobs hold slots: rows of job, recipient and when the last attempt was over.

    A job that holds one already holds it from then on.
    """
    slots = insert(Reservation).from_select(["job_id", "recipient", "reserved_at"], given)
    return slots.on_conflict_do_update(
        index_elements=[Reservation.job_id], set_={"reserved_at": slots.excluded.reserved_at}
    )
