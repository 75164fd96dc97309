"""What becomes of a job whose lease has ended without a result.

Its worker may have died before the provider call, during it or after it: nobody knows. So the
attempt counts, the job keeps its place in the queue, and the delivery key lets the provider tell a
repeat. When the budget is spent, one attempt more finds out how the last one ended; it is granted
once, so a job that kills whoever touches it is not handed out for ever.
"""

from dataclasses import dataclass
from uuid import UUID

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import Status


@dataclass(frozen=True, slots=True)
class ExpiredClaim:
    """A claim whose lease is over, as it was found. ``worker_id`` is who held it."""

    job_id: UUID
    token: UUID
    worker_id: str
    attempt: int
    max_attempts: int
    reconciliation_granted: bool


@dataclass(frozen=True, slots=True)
class Requeue:
    """The job waits in its old place. ``reconcile`` grants one attempt beyond its budget."""

    error: str
    reconcile: bool = False


Recovery = Requeue | Ended


@dataclass(frozen=True, slots=True)
class Recovered:
    """An expired claim and what became of its job."""

    claim: ExpiredClaim
    recovery: Recovery


def recover(claim: ExpiredClaim, lease_s: int) -> Recovery:
    """Decide what becomes of the job; ``lease_s`` is how long the lease was, in s."""
    expired = f"Claim expired after {lease_s}s without completion"
    if claim.attempt < claim.max_attempts:
        return Requeue(expired)
    if claim.reconciliation_granted:
        return Ended(Status.DEAD_LETTERED, expired)
    return Requeue(
        f"Final attempt's claim expired after {lease_s}s; outcome unknown,"
        " one reconciliation attempt granted",
        reconcile=True,
    )
