"""What follows an attempt: the end, another try after a backoff, or the place it had before."""

from dataclasses import dataclass
from typing import assert_never

from notify_queue.domain.attempt import Ended, Release, Retry, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome, Refused

# 2^40 ms is 34 years: beyond every cap, and the power of a huge attempt number is never computed.
_MAX_DOUBLINGS = 40


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with equal jitter. Both times are in ms."""

    base_ms: int
    max_ms: int

    def delay_ms(self, attempt: int, random: float) -> int:
        """Wait after failed attempt number ``attempt`` (from 1); ``random`` lies in [0, 1).

        Half of ``min(base * 2^(attempt-1), max)`` is certain and half is drawn: jobs that failed
        together spread out, and none comes back at once.
        """
        ceiling = min(self.base_ms << min(attempt - 1, _MAX_DOUBLINGS), self.max_ms)
        return round(ceiling / 2 + random * ceiling / 2)


def judge(
    outcome: Outcome, attempt: int, max_attempts: int, backoff: Backoff, random: float
) -> Verdict:
    """Decide what becomes of a job after attempt number ``attempt`` of ``max_attempts``."""
    match outcome:
        case Delivered():
            return Ended(Status.SENT)
        case Refused(error):
            return Ended(Status.FAILED, error)
        case Failed(error) if attempt >= max_attempts:
            return Ended(Status.DEAD_LETTERED, error)
        case NotSent():
            return Release()
        case Failed(error):
            return Retry(backoff.delay_ms(attempt, random), error)
        case _:
            assert_never(outcome)
