"""Step one: take as many due jobs as can start now."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from notify_queue.domain.aging import aging_for
from notify_queue.domain.attempt import Claim
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.worker.lease import Lease


@dataclass(frozen=True, slots=True)
class Batch:
    """What one pass claimed, most urgent first.

    ``next_due_s`` is how long until another job is due: 0 when more may be due already, None when
    nothing waits at all.
    """

    claims: list[Claim]
    lease: Lease
    next_due_s: float | None


@dataclass(frozen=True, slots=True)
class ClaimDueJobs:
    """The step, for one worker."""

    unit_of_work: UnitOfWorkFactory
    worker_id: str
    visibility_timeout_s: int
    aging_share: float
    aging_after: timedelta
    new_token: Callable[[], UUID]

    def __call__(self, limit: int) -> Batch:
        """Claim up to ``limit`` due jobs in one short transaction."""
        lease = self._lease()
        aging = aging_for(limit, self.aging_share, self.aging_after)
        with self.unit_of_work() as unit:
            due = unit.claims.lock_due(limit, aging)
            claims = unit.claims.claim(due, self.worker_id, self.new_token()) if due else []
            next_due_s = 0.0 if len(due) == limit else unit.claims.seconds_until_next()
            unit.commit()
        claims.sort(key=lambda claim: (-claim.priority, claim.due_at))
        return Batch(claims, lease, next_due_s)

    def suspect(self) -> Batch:
        """Claim the most urgent suspect, if one is due (docs/decisions/0011).

        The lease of a suspect's last attempt has ended without a result, and it is granted one
        more. It is to be tried alone, and then another look is due at once.
        """
        lease = self._lease()
        with self.unit_of_work() as unit:
            due = unit.claims.lock_suspect()
            claims = unit.claims.claim(due, self.worker_id, self.new_token()) if due else []
            unit.commit()
        return Batch(claims, lease, next_due_s=0.0)

    def suspect_waits(self) -> bool:
        """Whether a suspect is due."""
        with self.unit_of_work() as unit:
            return unit.claims.suspect_waits()

    def _lease(self) -> Lease:
        return Lease(time.monotonic() + self.visibility_timeout_s)
