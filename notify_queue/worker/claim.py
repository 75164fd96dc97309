"""Step one: take as many due jobs as can start now."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from notify_queue.delivery.lease import Lease
from notify_queue.domain.aging import Aging, aging_for
from notify_queue.domain.attempt import Candidate, Claim
from notify_queue.domain.rate_limit import RateLimit
from notify_queue.domain.schedule import spell_instant
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory
from notify_queue.worker.admit import MOST_SEATS, Admitted, ClaimWithinLimit


@dataclass(frozen=True, slots=True)
class Batch:
    """What one pass claimed, most urgent first.

    ``next_due_s`` is how long until another job is due: 0 when more may be due already, None when
    nothing waits at all.
    """

    claims: list[Claim]
    lease: Lease
    next_due_s: float | None


# Somebody else was deciding about a recipient, which takes milliseconds: look again after this.
BUSY_S: Final = 0.05

_log = get_logger("worker.claim")


@dataclass(frozen=True, slots=True)
class ClaimDueJobs:
    """The step, for one worker. Without a ``rate_limit`` whoever is due is claimed."""

    unit_of_work: UnitOfWorkFactory
    worker_id: str
    visibility_timeout_s: int
    aging_share: float
    aging_after: timedelta
    new_token: Callable[[], UUID]
    rate_limit: RateLimit | None

    def __call__(self, limit: int) -> Batch:
        """Claim up to ``limit`` due jobs in one short transaction."""
        lease = self._lease()
        if self.rate_limit is not None:
            limit = min(limit, MOST_SEATS)
        aging = aging_for(limit, self.aging_share, self.aging_after)
        with self.unit_of_work() as unit:
            if self.rate_limit is None:
                due = unit.claims.lock_due(limit, aging)
                done = Admitted(self._claim(unit, due) if due else [], more=len(due) == limit)
            else:
                done = self._within_limit(unit, self.rate_limit, aging).due(limit)
            next_due_s = 0.0 if done.more else self._seconds_until_next(unit, done)
            unit.commit()
        return self._batch(done, lease, next_due_s)

    def suspect(self) -> Batch:
        """Claim the most urgent suspect, if one is due (docs/decisions/0011).

        The lease of a suspect's last attempt has ended without a result, and it is granted one
        more. It is to be tried alone, and then another look is due at once.
        """
        lease = self._lease()
        with self.unit_of_work() as unit:
            if self.rate_limit is None:
                due = unit.claims.lock_suspects(1)
                done = Admitted(self._claim(unit, due) if due else [])
            else:
                strict = Aging(0, self.aging_after)
                done = self._within_limit(unit, self.rate_limit, strict).suspect()
            unit.commit()
        return self._batch(done, lease, next_due_s=0.0)

    def suspect_waits(self) -> bool:
        """Whether a suspect is due."""
        with self.unit_of_work() as unit:
            return unit.claims.suspect_waits()

    def _lease(self) -> Lease:
        return Lease(time.monotonic() + self.visibility_timeout_s)

    def _within_limit(self, unit: UnitOfWork, limit: RateLimit, aging: Aging) -> ClaimWithinLimit:
        return ClaimWithinLimit(unit, limit, aging, partial(self._claim, unit))

    def _claim(self, unit: UnitOfWork, locked: Sequence[Candidate]) -> list[Claim]:
        return unit.claims.claim(locked, self.worker_id, self.new_token())

    def _seconds_until_next(self, unit: UnitOfWork, done: Admitted) -> float | None:
        """Until a job is due or a gate may open, or somebody else is done with a recipient."""
        until = [unit.claims.seconds_until_next()]
        if self.rate_limit is not None:
            until.append(unit.gates.seconds_until_next())
        if done.busy:
            until.append(BUSY_S)
        return min((each for each in until if each is not None), default=None)

    def _batch(self, done: Admitted, lease: Lease, next_due_s: float | None) -> Batch:
        for candidate, opens_at in done.parked:
            _log.info(
                events.JOB_RATE_LIMITED,
                workerId=self.worker_id,
                jobId=str(candidate.job_id),
                attempt=candidate.attempt,
                retryAt=spell_instant(opens_at),
            )
        claims = sorted(done.claims, key=lambda claim: (-claim.priority, claim.due_at))
        return Batch(claims, lease, next_due_s)
