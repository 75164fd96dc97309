"""The example jobs: one of each kind that a newcomer should see, as values.

All times are distances from the moment of seeding, negative for the past, so that the examples are
as fresh on any day. Their keys are fixed: seeding again finds them and adds nothing.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import Status

MAX_ATTEMPTS: Final = 6

_NOW: Final = timedelta()
_OUTAGE: Final = "Simulated provider outage"
# Between being due and having ended: a call to a provider takes a while.
_CALL: Final = timedelta(seconds=2)
_BUSY: Final = 12


@dataclass(frozen=True, slots=True)
class Told:
    """The webhook event of the first time a job ended: as what, when, and after how many attempts.

    It has been delivered.
    """

    status: Status
    occurred: timedelta
    attempts: int


@dataclass(frozen=True, slots=True)
class Example:
    """One job as it is to be written.

    ``due`` is None for an ended job, ``outcome`` and ``ended`` for a live one. A ``redriven`` job
    has just been put back to work, with its old error and a fresh budget. ``told`` is the event of
    the time it ended, if an attempt has ended it.
    """

    key: str
    recipient: str
    payload: dict[str, Any]
    channel: Channel = Channel.EMAIL
    priority: Priority = Priority.NORMAL
    created: timedelta = _NOW
    scheduled: timedelta = _NOW
    due: timedelta | None = _NOW
    attempts: int = 0
    outcome: Status | None = None
    ended: timedelta | None = None
    error: str | None = None
    redriven: bool = False
    updated: timedelta = _NOW
    told: Told | None = None


def _email(subject: str) -> dict[str, Any]:
    return {"subject": subject, "body": "This is an example."}


def _ended(outcome: Status, *, minutes_ago: int) -> dict[str, Any]:
    """What the jobs that have ended have in common."""
    ended = -timedelta(minutes=minutes_ago)
    return {
        "scheduled": ended - _CALL,
        "due": None,
        "outcome": outcome,
        "ended": ended,
        "updated": ended,
    }


_WAITING: Final = (
    Example("seed-immediate", "ada@example.com", _email("Welcome")),
    Example(
        "seed-delayed",
        "grace@example.com",
        _email("Your appointment"),
        scheduled=timedelta(minutes=10),
        due=timedelta(minutes=10),
    ),
    Example(
        "seed-priority-high",
        "+2348012345678",
        {"text": "Your code is 314159"},
        channel=Channel.SMS,
        priority=Priority.HIGH,
    ),
    Example("seed-priority-normal", "linus@example.com", _email("Your receipt")),
    Example(
        "seed-priority-low",
        "device-token-7f3a9c",
        {"title": "News", "body": "There is something new."},
        channel=Channel.PUSH,
        priority=Priority.LOW,
    ),
    Example(
        "seed-retrying",
        "margaret@example.com",
        _email("Password reset"),
        created=-timedelta(minutes=2),
        scheduled=-timedelta(minutes=2),
        due=timedelta(seconds=30),
        attempts=2,
        error=_OUTAGE,
        updated=-timedelta(seconds=30),
    ),
    Example("seed-will-fail", "invalid-recipient@example.com", _email("Undeliverable")),
    Example(
        "seed-redriven",
        "edsger@example.com",
        {"title": "Build finished", "body": "All tests passed."},
        channel=Channel.PUSH,
        created=-timedelta(hours=4),
        scheduled=-timedelta(hours=4),
        error=_OUTAGE,
        redriven=True,
        told=Told(Status.DEAD_LETTERED, -timedelta(hours=3, minutes=55), MAX_ATTEMPTS),
    ),
)

_OVER: Final = (
    Example(
        "seed-sent",
        "alan@example.com",
        _email("Your parcel is on its way"),
        created=-timedelta(minutes=125),
        attempts=1,
        told=Told(Status.SENT, -timedelta(minutes=120), 1),
        **_ended(Status.SENT, minutes_ago=120),
    ),
    Example(
        "seed-failed",
        "invalid-old@example.com",
        _email("Monthly report"),
        created=-timedelta(minutes=95),
        attempts=1,
        error="Recipient rejected by provider",
        told=Told(Status.FAILED, -timedelta(minutes=90), 1),
        **_ended(Status.FAILED, minutes_ago=90),
    ),
    Example(
        "seed-dead-lettered",
        "barbara@example.com",
        {"text": "Your table is ready"},
        channel=Channel.SMS,
        created=-timedelta(hours=3),
        attempts=MAX_ATTEMPTS,
        error=_OUTAGE,
        told=Told(Status.DEAD_LETTERED, -timedelta(minutes=60), MAX_ATTEMPTS),
        **_ended(Status.DEAD_LETTERED, minutes_ago=60) | {"scheduled": -timedelta(hours=3)},
    ),
    Example(
        "seed-cancelled",
        "katherine@example.com",
        _email("Weekly digest"),
        priority=Priority.LOW,
        created=-timedelta(minutes=30),
        **_ended(Status.CANCELLED, minutes_ago=5) | {"scheduled": timedelta(hours=1)},
    ),
)

# More for one recipient than the hourly limit lets through.
_MANY: Final = tuple(
    Example(f"seed-busy-{number}", "busy@example.com", _email(f"Message {number} of {_BUSY}"))
    for number in range(1, _BUSY + 1)
)

EXAMPLES: Final = _WAITING + _OVER + _MANY
