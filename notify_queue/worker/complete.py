"""Step three: record what became of the jobs, many at a time.

A buffer between delivery and the database. It flushes by size or age, keeps what could not be
written until the lease is over, and has a limit that holds claiming back.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final
from uuid import UUID

from notify_queue.delivery.lease import Lease
from notify_queue.domain.attempt import Ended, Release, Result, Retry
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, Refused
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory, concerns_rows

# One statement's worth: beyond this a batch gains nothing and holds its row locks longer.
FLUSH_SIZE: Final = 500
# Long enough that a busy worker writes dozens at a time, short enough that nobody sees it.
FLUSH_AGE_S: Final = 0.005
# Results held while the database is away. Beyond it no new job is claimed.
LIMIT: Final = 4 * FLUSH_SIZE
# With nothing to write there is nothing to wait for but the next result, which wakes the loop.
_IDLE_S: Final = 60.0

_EVENTS: Final = {
    Status.SENT: events.JOB_SENT,
    Status.FAILED: events.JOB_FAIL,
    Status.DEAD_LETTERED: events.JOB_DEAD_LETTER,
}

_log = get_logger("worker.complete")


class CompletionBuffer:
    """Collects results and records them.

    ``limited`` lets every job whose attempt is over hold a slot of its recipient. ``wake`` starts a
    pass of the loop that runs it. ``wake_poll`` starts one of the claiming loop: a job that was put
    back has a new due time, and a buffer that was full held claiming back. ``wake_webhooks`` starts
    one of the webhooks: there is something to tell.
    ``released`` counts the jobs that went back untried.
    """

    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        worker_id: str,
        *,
        limited: bool,
        wake: Callable[[], None],
        wake_poll: Callable[[], None],
        wake_webhooks: Callable[[], None],
    ) -> None:
        """Start empty."""
        self._unit_of_work = unit_of_work
        self._worker_id = worker_id
        self._limited = limited
        self._wake = wake
        self._wake_poll = wake_poll
        self._wake_webhooks = wake_webhooks
        self._fresh: list[tuple[Result, Lease]] = []
        # What was in a batch that the server refused goes alone from then on, in turn and in a loop
        # of its own: a row that somebody has locked must hold up nobody else's.
        self._alone: deque[tuple[Result, Lease]] = deque()
        self._writing = 0
        self._flushing = False
        self._oldest = 0.0
        self.released = 0

    def __len__(self) -> int:
        """How many results are not recorded yet, those on their way included."""
        return len(self._fresh) + len(self._alone) + self._writing

    @property
    def settled(self) -> bool:
        """Whether all is recorded but for results that go alone, which may take a while."""
        return not self._fresh and not self._flushing

    @property
    def full(self) -> bool:
        """Whether claiming should wait until results could be written."""
        return len(self) >= LIMIT

    def add(self, result: Result, lease: Lease) -> None:
        """Take a result; it is recorded within the flush age when the database answers."""
        if not self._fresh:
            self._oldest = time.monotonic()
        self._fresh.append((result, lease))
        if len(self._fresh) in {1, FLUSH_SIZE}:
            self._wake()

    def run_once(self) -> float:
        """Flush when it is time and return the seconds until the next look."""
        if not self._fresh:
            return _IDLE_S
        young = FLUSH_AGE_S - (time.monotonic() - self._oldest)
        if young > 0 and len(self._fresh) < FLUSH_SIZE:
            return young
        self.flush()
        return 0.0 if self._fresh else _IDLE_S

    def flush(self) -> None:
        """Record one batch.

        Raises:
            Exception: the database's; what was not written is kept, and the caller tries again.
        """
        batch, self._fresh = self._fresh[:FLUSH_SIZE], self._fresh[FLUSH_SIZE:]
        self._flushing = bool(batch)
        try:
            if batch:
                self._write(batch)
        finally:
            self._flushing = False

    def retry_once(self) -> float | None:
        """Record one of those that go alone; 0 when more of them wait.

        Raises:
            Exception: as ``flush``.
        """
        if self._alone:
            self._write([self._alone.popleft()])
        return 0.0 if self._alone else None

    def _write(self, batch: list[tuple[Result, Lease]]) -> None:
        self._writing += len(batch)
        was_full = self.full
        try:
            with self._unit_of_work() as unit:
                recorded = unit.results.record(
                    [result for result, _ in batch], limited=self._limited
                )
                if self._limited:
                    _give_slots_back(unit, [result for result, _ in batch])
                unit.commit()
        except BaseException as error:
            # Recording twice is harmless: the fence lets the second time change nothing.
            kept = self._without_lost(batch)
            if concerns_rows(error):
                self._alone.extend(kept)
            else:
                self._fresh[:0] = kept
            raise
        finally:
            self._writing -= len(batch)
        for result, _ in batch:
            self._report(result, recorded)
        if was_full or any(isinstance(result.verdict, Retry) for result, _ in batch):
            self._wake_poll()
        if any(isinstance(result.verdict, Ended) for result, _ in batch):
            self._wake_webhooks()

    def _without_lost(self, batch: list[tuple[Result, Lease]]) -> list[tuple[Result, Lease]]:
        """Past its lease a job is recovery's, and this result no longer counts."""
        kept = []
        for result, lease in batch:
            if lease.over:
                self._report(result, recorded=set())
            else:
                kept.append((result, lease))
        return kept

    def _report(self, result: Result, recorded: set[UUID]) -> None:
        claim = result.claim
        fields: dict[str, object] = {
            "workerId": self._worker_id,
            "jobId": str(claim.job_id),
            "attempt": claim.attempt,
            "durationMs": result.duration_ms,
        }
        match result.outcome:
            case Delivered(_, duplicate):
                fields["duplicate"] = duplicate
            case Refused(error) | Failed(error):
                fields["error"] = error
        match result.verdict:
            case Ended(status):
                event = _EVENTS[status]
            case Retry(delay_ms):
                event = events.JOB_RETRY
                fields["retryInMs"] = delay_ms
            case Release():
                event = events.JOB_RELEASED
        if claim.job_id not in recorded:
            # The provider has the notification: whoever holds the job now will find that out.
            delivered = isinstance(result.outcome, Delivered)
            log = _log.info if delivered else _log.warn
            log(events.JOB_CLAIM_LOST, stage="complete", **fields)
            return
        if event == events.JOB_RELEASED:
            self.released += 1
        log = _log.info if event == events.JOB_SENT else _log.warn
        log(event, **fields)


def _give_slots_back(unit: UnitOfWork, results: list[Result]) -> None:
    """Jobs that go back untried held slots that their recipients' gates wait for."""
    released = {result.claim.recipient for result in results if isinstance(result.verdict, Release)}
    # Whoever else is deciding about one of them may not know yet, and looks a window later.
    ours = unit.recipients.try_lock(released) if released else set()
    if ours:
        unit.gates.look_again(ours)
