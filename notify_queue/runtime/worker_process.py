"""A worker process: its loops, and the order in which they stop."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import gevent
from gevent.event import Event

from notify_queue.bootstrap import Wakes, WorkerParts
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.runtime.loop import Loop

# How often the listening loop looks whether it should stop.
_LISTEN_S: Final = 1.0
# Between two looks at results that go alone, and whether the last ones are written.
_RETRY_S: Final = 0.2
# Recording goes on this much longer than deliveries may: it is milliseconds, or one lock timeout.
# With the default of 20 s for deliveries this stays below the 30 s after which platforms kill.
_RECORD_GRACE_S: Final = 5.0

_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = get_logger("worker")


@dataclass(frozen=True, slots=True)
class Times:
    """How long a worker waits, in s: between two looks at queue or outbox, and for its end."""

    poll_interval_s: float
    webhook_interval_s: float
    recovery_interval_s: float
    shutdown_timeout_s: float


def stop_on_signals() -> Event:
    """Set what is returned on SIGTERM or SIGINT, from now on and however often they come."""
    stop = Event()
    for number in _STOP_SIGNALS:
        gevent.signal_handler(number, stop.set)
    return stop


class WorkerProcess:
    """Claims, delivers, records, tells and recovers until a signal comes, then finishes what runs.

    A second signal changes nothing: what could be hurried is a delivery on its way, and cutting
    that off would make somebody repeat it. Who cannot wait sends SIGKILL, which loses nothing.
    """

    def __init__(
        self,
        build: Callable[[Wakes], WorkerParts],
        *,
        stop: Event,
        worker_id: str,
        times: Times,
    ) -> None:
        """Prepare the loops; ``stop`` is what :func:`stop_on_signals` returned.

        ``build`` makes what they run, which wakes them in turn.
        """
        poll, flush, webhooks = Event(), Event(), Event()
        self._wakes = Wakes(poll.set, flush.set, webhooks.set)
        parts = build(self._wakes)
        self._pipeline = parts.pipeline
        self._completions = parts.completions
        self._recover = parts.recover
        self._tidy_limits = parts.tidy_limits
        self._hints = parts.hints
        self._dispatcher = parts.webhooks
        self._worker_id = worker_id
        self._times = times
        self._stop = stop
        self._poll = self._loop(self._pipeline.run_once, events.WORKER_POLL_FAILED, poll)
        self._flush = self._loop(self._completions.run_once, events.WORKER_FLUSH_FAILED, flush)
        self._retry = self._loop(
            self._completions.retry_once, events.WORKER_FLUSH_FAILED, Event(), longest_s=_RETRY_S
        )
        self._recovery = self._loop(
            self._recover_once,
            events.WORKER_RECOVERY_FAILED,
            Event(),
            longest_s=times.recovery_interval_s,
        )
        self._limits = self._loop(
            self._limits_once,
            events.WORKER_LIMITS_FAILED,
            Event(),
            longest_s=times.recovery_interval_s,
        )
        self._webhooks = self._loop(
            self._dispatch_once,
            events.WEBHOOK_DISPATCH_FAILED,
            webhooks,
            longest_s=times.webhook_interval_s,
        )
        self._listen = self._loop(self._listen_once, events.WORKER_LISTEN_FAILED, Event())

    def run(self) -> float:
        """Work until SIGTERM or SIGINT, then drain.

        Returns, when everything is written down, the seconds that are left for stopping the rest.
        """
        if not self._stop.is_set():
            self._begin()
        self._stop.wait()
        left_s = self._drain()
        for number in _STOP_SIGNALS:
            # All is written down: another signal must not turn a clean end into a crash.
            signal.signal(number, signal.SIG_IGN)
        return left_s

    def _begin(self) -> None:
        self._recovery.start()
        self._limits.start()
        self._poll.start()
        self._flush.start()
        self._retry.start()
        if self._dispatcher is not None:
            self._webhooks.start()
        if self._hints is not None:
            self._listen.start()

    def _loop(
        self,
        run_once: Callable[[], float | None],
        failed: str,
        wake: Event,
        longest_s: float | None = None,
    ) -> Loop:
        return Loop(
            run_once,
            longest_s=longest_s or self._times.poll_interval_s,
            failed=failed,
            worker_id=self._worker_id,
            wake=wake,
        )

    def _listen_once(self) -> float:
        if self._hints is not None and self._hints.wait(_LISTEN_S):
            self._wakes.poll()
        return 0.0

    def _dispatch_once(self) -> float | None:
        return None if self._dispatcher is None else self._dispatcher.run_once()

    def _recover_once(self) -> float | None:
        """One bounded pass; at once again when it was full, else when the next lease ends."""
        done = self._recover()
        if done.requeued:
            # Nobody else may be awake to take them.
            self._wakes.poll()
        if done.dead_lettered:
            self._wakes.webhooks()
        return 0.0 if done.full else done.next_s

    def _limits_once(self) -> float | None:
        """One bounded pass; at once again when it was full."""
        done = self._tidy_limits()
        if done.let_go:
            self._wakes.poll()
        return 0.0 if done.more else None

    def _drain(self) -> float:
        """Claim nothing more, finish the running attempts, record what they came to."""
        deadline = time.monotonic() + self._times.shutdown_timeout_s
        self._pipeline.stop()
        for loop in (self._poll, self._listen, self._recovery, self._limits, self._webhooks):
            loop.stop()
        # A claim or a recovery on its way is a transaction with deadlines of its own.
        self._poll.join(max(self._times.shutdown_timeout_s, _RECORD_GRACE_S))
        abandoned = self._pipeline.drain(max(deadline - time.monotonic(), 0))
        # The flush loop goes on all the while, and writes what the last attempts come to.
        last = max(deadline, time.monotonic()) + _RECORD_GRACE_S
        self._recovery.join(last - time.monotonic())
        self._limits.join(last - time.monotonic())
        unrecorded = self._wait_until_recorded(last)
        self._webhooks.join(last - time.monotonic())
        abandoned_webhooks = self._drain_webhooks(last - time.monotonic())
        self._flush.stop()
        self._retry.stop()
        _log.info(
            events.WORKER_DRAINED,
            workerId=self._worker_id,
            released=self._completions.released,
            abandoned=abandoned,
            unrecorded=unrecorded,
            abandonedWebhooks=abandoned_webhooks,
        )
        return max(last - time.monotonic(), 0)

    def _drain_webhooks(self, left_s: float) -> int:
        """Let the POSTs on their way end and be recorded; return how many had not at the end."""
        return 0 if self._dispatcher is None else self._dispatcher.drain(max(left_s, 0))

    def _wait_until_recorded(self, deadline: float) -> int:
        """Wait until the buffer is written; return how many results are left at the deadline."""
        while len(self._completions) and time.monotonic() < deadline:
            self._wakes.flush()
            gevent.sleep(_RETRY_S)
        return len(self._completions)
