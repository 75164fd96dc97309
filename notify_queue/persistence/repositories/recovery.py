"""Claims whose lease is over are taken back.

Two steps in one short transaction, as in claiming: one statement locks and lists, the others write
exactly what was listed. Both ask for the expiry, and the writing ones for the claim token too.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, Text, func, select
from sqlalchemy.orm import Session

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import RETURNABLE
from notify_queue.domain.recovery import ExpiredClaim, Recovered, Requeue
from notify_queue.persistence.fenced import end_claimed, given_rows, requeue_claimed
from notify_queue.persistence.guards import entry_is
from notify_queue.persistence.models import NotificationJob, QueueEntry


class Recovery:
    """Takes expired claims back. ``lease`` is how long a claim is good for."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def lock_expired(
        self, limit: int, lease: timedelta, but_not: Sequence[UUID] = ()
    ) -> list[ExpiredClaim]:
        """Lock up to ``limit`` expired claims, the longest expired first, none of ``but_not``.

        Jobs that somebody else has locked are passed over, in the queue or in the ledger: their
        worker is just recording them, or another one recovers them. The locks last until the
        transaction ends.
        """
        expired = (
            select(
                QueueEntry.job_id,
                QueueEntry.claim_token,
                QueueEntry.locked_by,
                QueueEntry.attempt_count,
                QueueEntry.max_attempts,
                QueueEntry.reconciliation_granted,
            )
            .join(NotificationJob, NotificationJob.id == QueueEntry.job_id)
            .where(entry_is(RETURNABLE), _is_over(lease), QueueEntry.job_id.not_in(but_not))
            .order_by(QueueEntry.locked_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return [
            ExpiredClaim(
                job_id=row.job_id,
                token=row.claim_token,
                worker_id=row.locked_by,
                attempt=row.attempt_count,
                max_attempts=row.max_attempts,
                reconciliation_granted=row.reconciliation_granted,
            )
            for row in self._session.execute(expired)
        ]

    def count_expired(self, lease: timedelta) -> int:
        """How many claims have expired. Takes no lock."""
        expired = select(func.count()).where(entry_is(RETURNABLE), _is_over(lease))
        return self._session.scalar(expired) or 0

    def write(
        self, recovered: Sequence[Recovered], lease: timedelta, *, limited: bool
    ) -> set[UUID]:
        """Write what was decided about locked claims and return the ids of those jobs.

        When recipients are ``limited``, all of them hold a slot from then on: nobody knows whether
        the provider was called.
        """
        ended: list[tuple[ExpiredClaim, Ended]] = []
        requeued: list[tuple[ExpiredClaim, Requeue]] = []
        for each in recovered:
            match each.recovery:
                case Ended() as end:
                    ended.append((each.claim, end))
                case Requeue() as requeue:
                    requeued.append((each.claim, requeue))
        dead = end_claimed(self._session, ended, limited=limited, only_if=_is_over(lease))
        return dead | self._requeue(requeued, lease, limited=limited)

    def _requeue(
        self, requeued: Sequence[tuple[ExpiredClaim, Requeue]], lease: timedelta, *, limited: bool
    ) -> set[UUID]:
        """Let go of the claim and of nothing else: due time, order and attempts stay."""
        if not requeued:
            return set()
        given = given_rows(
            [claim for claim, _ in requeued],
            {
                "granted": (Integer, [int(requeue.reconcile) for _, requeue in requeued]),
                "error": (Text, [requeue.error for _, requeue in requeued]),
            },
        )
        granted = given.c.granted
        return requeue_claimed(
            self._session,
            given,
            {
                "max_attempts": QueueEntry.max_attempts + granted,
                "reconciliation_granted": QueueEntry.reconciliation_granted | (granted > 0),
            },
            limited=limited,
            only_if=_is_over(lease),
        )

    def seconds_until_next(self, lease: timedelta) -> float | None:
        """How long until the oldest claim expires, or None when nothing is claimed."""
        left = func.min(QueueEntry.locked_at) + lease - func.clock_timestamp()
        until: Any = self._session.scalar(
            select(func.extract("epoch", left)).where(entry_is(RETURNABLE))
        )
        return None if until is None else float(until)


def _is_over(lease: timedelta) -> ColumnElement[bool]:
    return QueueEntry.locked_at < func.now() - lease
