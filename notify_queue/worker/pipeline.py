"""One pass of a worker: claim what can start now, start all of it.

There is no local queue. A claimed job starts at once, so none ages in memory, no lease is spent on
waiting, and an urgent job never stands behind a batch of others.
"""

import time
from collections.abc import Callable
from typing import Final

import gevent
from gevent.pool import Group

from notify_queue.delivery.lease import Lease
from notify_queue.domain.attempt import Claim, Release, Result
from notify_queue.domain.outcome import NotSent
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.worker.claim import Batch, ClaimDueJobs
from notify_queue.worker.complete import CompletionBuffer
from notify_queue.worker.deliver import DeliverJob

# With work waiting, every freed slot could be filled by a claim of one. A few ms gather several.
GATHER_S: Final = 0.005
# A worker that is never idle makes itself idle for a suspect about this often, and for one only.
ISOLATE_AFTER_S: Final = 60.0
# Until the buffer is written, which is asked for before that.
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
        self._stopping = False
        # Whether a suspect is running, whether the worker makes itself idle for one, and when it
        # looked for one last.
        self._alone = False
        self._isolating = False
        self._last_look = time.monotonic()

    def run_once(self) -> float | None:
        """Make one pass; return the seconds until the next job is due, None when none waits."""
        if self._more_waits and 0 < self._room() < self._batch_size:
            gevent.sleep(GATHER_S)
        room = self._room()
        if room == 0:
            # The next attempt that ends wakes us.
            self._more_waits = True
            return None
        if self._isolating:
            return self._isolate()
        batch = self._claim(room)
        self._start(batch)
        self._more_waits = len(batch.claims) == room
        if self._idle() and self._try_suspect():
            return None
        if not (self._running or self._completions.settled):
            # Idle but for what is to be recorded: look again for a suspect after that.
            return UNRECORDED_S
        if self._busy_for_long() and self._suspect_waits():
            self._isolating = self._more_waits = True
            # It may have become idle while we asked.
            return None if self._running else 0.0
        return batch.next_due_s if self._room() else None

    def _start(self, batch: Batch) -> None:
        if self._stopping:
            self._hand_back(batch)
            return
        for claim in batch.claims:
            self._running += 1
            self._attempts.start(gevent.Greenlet(self._attempt, claim, batch.lease))

    def _isolate(self) -> float:
        """The worker has become idle on purpose: try a suspect, or go on as ever."""
        if not self._completions.settled:
            # Should it kill us, what is delivered must be recorded before.
            return UNRECORDED_S
        self._isolating = False
        self._try_suspect()
        return 0.0

    def _try_suspect(self) -> bool:
        """Start one alone if one is due. Until it ends, which wakes us, there is no room."""
        self._last_look = time.monotonic()
        batch = self._claim.suspect()
        self._alone = self._more_waits = bool(batch.claims)
        self._start(batch)
        return self._alone

    def _idle(self) -> bool:
        return not (self._running or self._stopping) and self._completions.settled

    def _busy_for_long(self) -> bool:
        return time.monotonic() - self._last_look > ISOLATE_AFTER_S

    def _suspect_waits(self) -> bool:
        self._last_look = time.monotonic()
        return self._claim.suspect_waits()

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
        if self._completions.full or ((self._alone or self._isolating) and self._running):
            return 0
        return min(self._concurrency - self._running, self._batch_size)

    def _attempt(self, claim: Claim, lease: Lease) -> None:
        try:
            self._completions.add(self._deliver(claim, lease), lease)
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
            self._alone = False
            if self._more_waits:
                self._wake()
