"""One pass of a worker: claim what can start now, start all of it.

There is no local queue. A claimed job starts at once, so none ages in memory, no lease is spent on
waiting, and an urgent job never stands behind a batch of others.
"""

from collections.abc import Callable
from typing import Final

import gevent
from gevent.pool import Group

from notify_queue.domain.attempt import Claim, Release, Result
from notify_queue.domain.outcome import NotSent
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.worker.claim import Batch, ClaimDueJobs
from notify_queue.worker.complete import CompletionBuffer
from notify_queue.worker.deliver import DeliverJob
from notify_queue.worker.lease import Lease

# With work waiting, every freed slot could be filled by a claim of one. A few ms gather several.
GATHER_S: Final = 0.005
# Until the buffer is written, which is asked for before a suspect is tried.
UNRECORDED_S: Final = 0.05

_log = get_logger("worker.pipeline")


class Pipeline:
    """Joins the steps at a bounded concurrency. ``wake`` starts the next pass early."""

    def __init__(  # noqa: PLR0913 - the steps, their bounds, and the way to ask for a pass
        self,
        claim: ClaimDueJobs,
        deliver: DeliverJob,
        completions: CompletionBuffer,
        *,
        worker_id: str,
        concurrency: int,
        batch_size: int,
        wake: Callable[[], None],
    ) -> None:
        """Start nothing yet."""
        self._claim = claim
        self._deliver = deliver
        self._completions = completions
        self._worker_id = worker_id
        self._concurrency = concurrency
        self._batch_size = batch_size
        self._wake = wake
        self._running = 0
        self._attempts = Group()
        self._more_waits = False
        self._alone = False
        self._suspect_waits = False
        self._stopping = False

    def run_once(self) -> float | None:
        """Make one pass; return the seconds until the next job is due, None when none waits."""
        if self._more_waits and 0 < self._room() < self._batch_size:
            gevent.sleep(GATHER_S)
        room = self._room()
        if room == 0:
            # The next attempt that ends wakes us.
            self._more_waits = True
            return None
        if self._suspect_waits and len(self._completions):
            # Should it kill us, what is delivered must be recorded before.
            return UNRECORDED_S
        batch = self._claim(room, idle=self._idle())
        if self._stopping:
            self._hand_back(batch)
            return None
        for claim in batch.claims:
            self._running += 1
            self._attempts.start(gevent.Greenlet(self._attempt, claim, batch.lease))
        self._alone, self._suspect_waits = batch.alone, batch.suspect_waits
        self._more_waits = len(batch.claims) == room or batch.alone or batch.suspect_waits
        if batch.suspect_waits and not batch.claims:
            return 0.0
        return batch.next_due_s if self._room() else None

    def stop(self) -> None:
        """Start no attempt any more: what a claim on its way still brings goes back untried."""
        self._stopping = True

    def drain(self, timeout_s: float) -> int:
        """Wait for running attempts and return how many were still running at the end."""
        self._attempts.join(timeout=timeout_s)
        return self._running

    def _hand_back(self, batch: Batch) -> None:
        """Through the buffer, which keeps trying as long as the lease lives and fences as ever."""
        for claim in batch.claims:
            self._completions.add(Result(claim, NotSent(), Release(), duration_ms=0), batch.lease)

    def _room(self) -> int:
        isolating = self._alone or self._suspect_waits
        if self._completions.full or (isolating and self._running):
            return 0
        return min(self._concurrency - self._running, self._batch_size)

    def _idle(self) -> bool:
        """Whether a suspect may be tried now.

        After one it is the others' turn: many suspects must not keep all other jobs waiting.
        """
        return not (self._running or self._alone or len(self._completions))

    def _attempt(self, claim: Claim, lease: Lease) -> None:
        try:
            result = self._deliver(claim, lease)
            if result is not None:
                self._completions.add(result, lease)
        except Exception as error:  # noqa: BLE001 - one job's fault must not reach the others
            _log.error(
                events.JOB_PROCESSING_ERROR,
                workerId=self._worker_id,
                jobId=str(claim.job_id),
                attempt=claim.attempt,
                error=describe_error(error),
            )
        finally:
            self._running -= 1
            if self._more_waits:
                self._wake()
