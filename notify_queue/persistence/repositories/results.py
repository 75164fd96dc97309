"""What became of claimed jobs, recorded in batches and fenced by the claim token.

Fed by arrays, so a batch of one and a batch of five hundred are the same two statements. A row
whose token no longer matches was claimed by somebody else meanwhile: it is left alone, and its
absence from the answer tells the late worker.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Integer,
    TableValuedAlias,
    Text,
    Uuid,
    bindparam,
    column,
    delete,
    func,
    update,
)
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Claim, Ended, Result, Retry
from notify_queue.persistence.models import NotificationJob, QueueEntry


class Results:
    """Records finished attempts."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def record(self, results: Sequence[Result]) -> set[UUID]:
        """Write every result whose claim still stands and return the ids of those jobs.

        The row locks taken are those of the written rows and last until the commit that follows at
        once. Rows are given in id order, so that two batches that overlap rather queue up than
        deadlock; a planner may join otherwise, and then the loser is tried again.
        """
        ordered = sorted(results, key=lambda result: result.claim.job_id)
        ended: list[tuple[Claim, Ended]] = []
        retried: list[tuple[Claim, Retry]] = []
        for result in ordered:
            match result.verdict:
                case Ended() as end:
                    ended.append((result.claim, end))
                case Retry() as retry:
                    retried.append((result.claim, retry))
        return self._end(ended) | self._put_back(retried)

    def _end(self, ended: Sequence[tuple[Claim, Ended]]) -> set[UUID]:
        """Take ended jobs out of the queue and write their outcome into the ledger."""
        if not ended:
            return set()
        given = _unnest(
            ended,
            outcome=(Text, [verdict.status.value for _, verdict in ended]),
            error=(Text, [verdict.error for _, verdict in ended]),
        )
        gone = (
            delete(QueueEntry)
            .where(QueueEntry.job_id == given.c.job_id)
            .where(QueueEntry.claim_token == given.c.claim_token)
            .returning(
                QueueEntry.job_id,
                QueueEntry.attempt_count,
                QueueEntry.max_attempts,
                given.c.outcome,
                given.c.error,
            )
            .cte("gone")
        )
        # The same statement: a job never stands in both tables as ended and live, or in neither.
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
        return set(self._session.scalars(written))

    def _put_back(self, retried: Sequence[tuple[Claim, Retry]]) -> set[UUID]:
        """Let go of the claim and set the next due time, by the database's clock."""
        if not retried:
            return set()
        given = _unnest(
            retried,
            delay_ms=(Integer, [verdict.delay_ms for _, verdict in retried]),
            error=(Text, [verdict.error for _, verdict in retried]),
        )
        delay = given.c.delay_ms * func.make_interval(0, 0, 0, 0, 0, 0, 0.001)
        waiting = (
            update(QueueEntry)
            .where(QueueEntry.job_id == given.c.job_id)
            .where(QueueEntry.claim_token == given.c.claim_token)
            .values(
                claim_token=None,
                locked_by=None,
                locked_at=None,
                due_at=func.clock_timestamp() + delay,
            )
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
        return set(self._session.scalars(noted))


def _unnest(
    pairs: Sequence[tuple[Claim, Any]], **columns: tuple[Any, list[Any]]
) -> TableValuedAlias:
    """Turn claims into rows of (job_id, claim_token, and the given columns)."""
    rows: dict[str, tuple[Any, list[Any]]] = {
        "job_id": (Uuid, [claim.job_id for claim, _ in pairs]),
        "claim_token": (Uuid, [claim.token for claim, _ in pairs]),
        **columns,
    }
    return (
        func.unnest(
            *(bindparam(name, values, ARRAY(kind)) for name, (kind, values) in rows.items())
        )
        .table_valued(*(column(name, kind) for name, (kind, _) in rows.items()))
        .render_derived("given")
    )
