"""A webhook: what the receiver is told of an ended job, and what follows each attempt at it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never
from uuid import UUID

from notify_queue.domain.lifecycle import ENDINGS, Status
from notify_queue.domain.retry import Backoff
from notify_queue.domain.schedule import spell_instant

# The order is the one in which messages list them.
EVENT_STATUSES: Final = tuple(status for status in Status if status in ENDINGS)

LOST: Final = "No result within the lease: the worker died, or its database was away"

_SUCCESS: Final = range(200, 300)
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = range(500, 600)


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """That a job has ended. ``redrive_count`` is the generation it ended in."""

    event_id: UUID
    job_id: UUID
    status: Status
    attempt_count: int
    redrive_count: int
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event whose turn it is.

    ``attempts`` were made and ``forgiven`` of them when an operator revived the event. ``lost``
    says that the last one never had a result.
    """

    event: WebhookEvent
    attempts: int
    forgiven: int
    lost: bool
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One attempt: its number fences its result, and ``spent`` counts it within the budget.

    It was ``taken_at`` by the database's clock.
    """

    event: WebhookEvent
    attempt: int
    spent: int
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The receiver has answered; ``wait_s`` is how long it wants to be left alone."""

    status: int
    wait_s: int = 0

    @property
    def accepted(self) -> bool:
        """Whether the receiver has the event now. A redirect is no acceptance: none is followed."""
        return self.status in _SUCCESS


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """There was none, or none that could be understood in time."""

    error: str


Answer = Answered | NoAnswer


@dataclass(frozen=True, slots=True)
class Received:
    """The receiver has the event."""


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Another attempt is due after ``delay_ms``."""

    delay_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """No attempt is left; an operator may revive the event."""

    error: str | None


Verdict = Received | TryAgain | GivenUp


@dataclass(frozen=True, slots=True)
class Posted:
    """An attempt, what it met, and what follows from that."""

    dispatch: Dispatch
    answer: Answer
    verdict: Verdict


def body_of(event: WebhookEvent) -> bytes:
    """Write the exact bytes that are sent and signed."""
    told = {
        "eventId": str(event.event_id),
        "jobId": str(event.job_id),
        "status": event.status.value,
        "attemptCount": event.attempt_count,
        "timestamp": spell_instant(event.occurred_at),
        "redriveCount": event.redrive_count,
    }
    return json.dumps(told, separators=(",", ":")).encode()


def is_spent(due: DueEvent, max_attempts: int) -> bool:
    """Whether the budget was used up before: by an event that kills whoever sends it, at last."""
    return due.attempts - due.forgiven >= max_attempts


def judge_answer(
    answer: Answer, spent: int, max_attempts: int, backoff: Backoff, random: float
) -> Verdict:
    """Decide what becomes of an event after attempt number ``spent`` of ``max_attempts``."""
    match answer:
        case Answered() if answer.accepted:
            return Received()
        case Answered(status, wait):
            error, wait_ms = f"HTTP {status}", wait * 1000
        case NoAnswer(error):
            wait_ms = 0
        case _:
            assert_never(answer)
    if spent >= max_attempts:
        return GivenUp(error)
    return TryAgain(max(backoff.delay_ms(spent, random), wait_ms), error)


def is_trouble(answer: Answer) -> bool:
    """Whether the receiver seems to be down or overwhelmed, rather than to dislike this event."""
    match answer:
        case Answered(status):
            return status == _TOO_MANY_REQUESTS or status in _SERVER_ERRORS
        case NoAnswer():
            return True
        case _:
            assert_never(answer)
