"""What became of claimed jobs, recorded in batches and fenced by the claim token."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Integer, Text, func, update
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Claim, Ended, Release, Result, Retry
from notify_queue.domain.lifecycle import RETURNABLE
from notify_queue.persistence.fenced import (
    end_claimed,
    given_rows,
    requeue_claimed,
    still_held,
)
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import QueueEntry


class Results:
    """Records finished attempts, and takes back those that were never made."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def record(self, results: Sequence[Result], *, limited: bool) -> set[UUID]:
        """Write every result whose claim still stands and return the ids of those jobs.

        When recipients are ``limited``, all but the released jobs hold a slot from then on.

        The row locks taken are those of the written rows and last until the commit that follows at
        once. Rows are given in id order, so that two batches that overlap rather queue up than
        deadlock; a planner may join otherwise, and then the loser is tried again.
        """
        ended: list[tuple[Claim, Ended]] = []
        retried: list[tuple[Claim, Retry]] = []
        released: list[Claim] = []
        for result in sorted(results, key=lambda result: result.claim.job_id):
            match result.verdict:
                case Ended() as end:
                    ended.append((result.claim, end))
                case Retry() as retry:
                    retried.append((result.claim, retry))
                case Release():
                    released.append(result.claim)
        return (
            end_claimed(self._session, ended, limited=limited)
            | self._put_back(retried, limited=limited)
            | self._release(released)
        )

    def _put_back(self, retried: Sequence[tuple[Claim, Retry]], *, limited: bool) -> set[UUID]:
        """Let go of the claim and set the next due time, by the database's clock."""
        if not retried:
            return set()
        given = given_rows(
            [claim for claim, _ in retried],
            {
                "delay_ms": (Integer, [retry.delay_ms for _, retry in retried]),
                "error": (Text, [retry.error for _, retry in retried]),
            },
        )
        delay = given.c.delay_ms * func.make_interval(0, 0, 0, 0, 0, 0, 0.001)
        due_at = func.clock_timestamp() + delay
        return requeue_claimed(self._session, given, {"due_at": due_at}, limited=limited)

    def _release(self, claims: Sequence[Claim]) -> set[UUID]:
        """Undo the claim: the attempt is refunded, and the due time was never touched."""
        if not claims:
            return set()
        given = given_rows(claims, {})
        released = (
            update(QueueEntry)
            .where(still_held(given), entry_is(RETURNABLE))
            .values(
                claim_token=None,
                locked_by=None,
                locked_at=None,
                attempt_count=QueueEntry.attempt_count - 1,
            )
            .returning(QueueEntry.job_id)
            .execution_options(synchronize_session=False)
        )
        return set(self._session.scalars(released))
