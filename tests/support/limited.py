"""A worker under a limit, a step at a time, and time that passes at a word."""

import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from notify_queue.delivery.lease import Lease
from notify_queue.domain.attempt import Claim, Ended, Release, Result, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome
from notify_queue.domain.rate_limit import RateLimit
from notify_queue.maintenance.limits import TidyLimits
from notify_queue.maintenance.recover import RecoverExpired
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.worker.claim import Batch, ClaimDueJobs
from notify_queue.worker.complete import CompletionBuffer
from tests.support.jobs import Jobs

HOUR_S = 3600
SENT = Ended(Status.SENT)
LEASE_S = 60


class Limited:
    """The steps of one worker: at most ``most`` notifications a recipient in ``window_s``."""

    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        most: int,
        window_s: int = HOUR_S,
        *,
        aging_share: float = 0.0,
    ) -> None:
        self._unit_of_work = unit_of_work
        self.limit = RateLimit(most, timedelta(seconds=window_s))
        self._claim = ClaimDueJobs(
            unit_of_work,
            "w",
            visibility_timeout_s=LEASE_S,
            aging_share=aging_share,
            aging_after=timedelta(seconds=300),
            new_token=uuid4,
            rate_limit=self.limit,
        )
        self.recover = RecoverExpired(unit_of_work, "w", LEASE_S, limited=True)
        self.tidy = TidyLimits(unit_of_work, "w", self.limit, self.limit.window)

    def batch(self, seats: int = 100) -> Batch:
        """Make one pass."""
        return self._claim(seats)

    def claim(self, seats: int = 100) -> list[Claim]:
        """Make one pass and return what it claimed, most urgent first."""
        return self.batch(seats).claims

    def claimed(self, seats: int = 100) -> list[UUID]:
        """Make one pass and return which jobs it claimed, most urgent first."""
        return [claim.job_id for claim in self.claim(seats)]

    def suspect_claims(self) -> list[Claim]:
        """Make one pass for a suspect and return what it claimed."""
        return self._claim.suspect().claims

    def suspect(self) -> list[UUID]:
        """Make one pass for a suspect and return which job it claimed."""
        return [claim.job_id for claim in self.suspect_claims()]

    def end(self, claims: Sequence[Claim], verdict: Verdict = SENT) -> None:
        """Record what became of claims, as the worker does."""
        buffer = CompletionBuffer(
            self._unit_of_work,
            "w",
            limited=True,
            wake=lambda: None,
            wake_poll=lambda: None,
            wake_webhooks=lambda: None,
        )
        for claim in claims:
            result = Result(claim, _outcome(verdict), verdict, duration_ms=1)
            buffer.add(result, Lease(time.monotonic() + LEASE_S))
        while len(buffer):
            buffer.flush()

    def send(self, seats: int = 100) -> list[UUID]:
        """Make one pass, send what it claimed and return which jobs that were."""
        claims = self.claim(seats)
        self.end(claims)
        return [claim.job_id for claim in claims]


def _outcome(verdict: Verdict) -> Outcome:
    match verdict:
        case Release():
            return NotSent()
        case Ended(Status.SENT):
            return Delivered("m")
        case _:
            return Failed("no")


def let_pass(jobs: Jobs, seconds: float) -> None:
    """Let time pass for the limits alone: slots and gates are as they will be then."""
    for statement in (
        "UPDATE rate_limit_reservations SET reserved_at = reserved_at - make_interval(secs => :s)",
        "UPDATE rate_limit_gates SET opens_at = opens_at - make_interval(secs => :s)",
    ):
        jobs.run(statement, s=seconds)


def look_at_gates(jobs: Jobs) -> None:
    """Have the next pass look at every gate, so that slots alone decide."""
    jobs.run("UPDATE rate_limit_gates SET opens_at = now()")


def expire(jobs: Jobs, job_id: UUID) -> None:
    """Let the lease of a claim be over."""
    jobs.run(
        "UPDATE job_queue SET locked_at = now() - make_interval(secs => :age) WHERE job_id = :id",
        age=LEASE_S + 1,
        id=job_id,
    )
