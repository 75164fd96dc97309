"""One attempt at a job: who may make it, what a claim hands out and what comes back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import ENDINGS, Status
from notify_queue.domain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Candidate:
    """A due job that might be claimed in this pass.

    ``attempt`` is the number that its attempt would have. ``aged`` says that its lower priority has
    kept it waiting for too long, ``suspect`` that it is to be tried alone (docs/decisions/0011),
    ``parked`` that it waits for a slot of its recipient.
    """

    job_id: UUID
    recipient: str
    priority: Priority
    due_at: datetime
    attempt: int
    aged: bool
    suspect: bool
    parked: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to make one attempt at one job, until its lease ends.

    ``token`` is the fencing token: only who shows it may record what became of the attempt.
    ``attempt`` counts from 1 and includes this one.
    """

    job_id: UUID
    token: UUID
    attempt: int
    max_attempts: int
    channel: Channel
    recipient: str
    payload: dict[str, Any]
    priority: Priority
    due_at: datetime

    @property
    def delivery_key(self) -> str:
        """The same for every attempt at a job, so that a provider can tell a repeat."""
        return str(self.job_id)


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt was the last: the job leaves the queue with this outcome."""

    status: Status
    error: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no attempt can come to."""
        if self.status not in ENDINGS:
            raise ValueError(f"an attempt cannot end a job as {self.status}")


@dataclass(frozen=True, slots=True)
class Retry:
    """The job waits ``delay_ms`` by the database's clock and is tried again."""

    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class Release:
    """The job goes back to its place as if it had not been claimed: the attempt is refunded."""


Verdict = Ended | Retry | Release


@dataclass(frozen=True, slots=True)
class Result:
    """One finished attempt, ready to be recorded."""

    claim: Claim
    outcome: Outcome
    verdict: Verdict
    duration_ms: int
