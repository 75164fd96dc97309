"""Candidates and slots by number, and instants by ticks.

A tick is a microsecond, the finest that an instant can tell apart, and tests have windows of a few
ticks, so that what falls just inside or just outside of one comes up all the time.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority
from notify_queue.domain.rate_limit import Slot

TICK = timedelta(microseconds=1)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
# Notifications go by number: even ones are for the first recipient, odd ones for the second.
RECIPIENTS = ("ada@example.com", "bob@example.com")


def at(tick: int) -> datetime:
    """So many ticks after now, or before it."""
    return NOW + tick * TICK


def slot(number: int, ended: int | None) -> Slot:
    """The slot of a notification whose attempt ended at this tick, or runs."""
    ended_at = None if ended is None else at(ended)
    return Slot(RECIPIENTS[number % 2], UUID(int=number), ended_at)


def candidate(number: int) -> Candidate:
    """A notification that is due."""
    return Candidate(
        job_id=UUID(int=number),
        recipient=RECIPIENTS[number % 2],
        priority=Priority.NORMAL,
        due_at=NOW,
        attempt=1,
        aged=False,
        suspect=False,
        parked=False,
    )
