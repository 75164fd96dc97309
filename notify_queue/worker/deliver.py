"""Step two: hand one job to its provider. No transaction is open here."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from notify_queue.delivery.deadline import deliver_within
from notify_queue.delivery.lease import Lease
from notify_queue.delivery.provider import Message, Provider
from notify_queue.domain.attempt import Claim, Result
from notify_queue.domain.error_text import clean_error
from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome, Refused
from notify_queue.domain.retry import Backoff, judge
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger

# What must be left of the lease after the longest possible call: time to record the outcome.
RECORDING_MARGIN_MS: Final = 1_000

_log = get_logger("worker.deliver")


@dataclass(frozen=True, slots=True)
class DeliverJob:
    """The step, for one worker. ``random`` draws from [0, 1) for the jitter of a backoff."""

    providers: Mapping[Channel, Provider]
    timeout_ms: int
    backoff: Backoff
    worker_id: str
    random: Callable[[], float]

    def __call__(self, claim: Claim, lease: Lease) -> Result:
        """Make the attempt and judge it.

        No attempt is made when the lease may not outlast it: it might run beside the next one. Such
        a job goes back untried. It took seconds to get here, so that is no busy loop.
        """
        began = time.monotonic()
        outcome = self._attempt(claim, lease)
        return Result(
            claim,
            outcome,
            judge(outcome, claim.attempt, claim.max_attempts, self.backoff, self.random()),
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    def _attempt(self, claim: Claim, lease: Lease) -> Outcome:
        left_ms, needed_ms = lease.left_ms, self.timeout_ms + RECORDING_MARGIN_MS
        if left_ms <= needed_ms:
            _log.warn(
                events.WORKER_LEASE_TOO_SHORT,
                workerId=self.worker_id,
                jobId=str(claim.job_id),
                attempt=claim.attempt,
                leftMs=left_ms,
                neededMs=needed_ms,
            )
            return NotSent()
        message = Message(claim.delivery_key, claim.channel, claim.recipient, claim.payload)
        outcome = deliver_within(self.providers[claim.channel], message, self.timeout_ms)
        return _cleaned(outcome, claim.recipient)


def _cleaned(outcome: Outcome, recipient: str) -> Outcome:
    """A provider's words go into the database, an answer and a log: make them fit for that."""
    match outcome:
        case Delivered() | NotSent():
            return outcome
        case Refused(error):
            return Refused(clean_error(error, recipient))
        case Failed(error):
            return Failed(clean_error(error, recipient))
        case _:
            assert_never(outcome)
