"""A background duty: one bounded pass after another, until it is told to stop."""

import random
from collections.abc import Callable
from typing import Final

import gevent
from gevent.event import Event

from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error

# After a failed pass, at most: a database that is back should find us at work within a second.
_PAUSE_S: Final = 1.0

_log = get_logger("worker.loop")


class Loop:
    """Calls ``run_once`` for ever and outlives whatever it raises.

    ``run_once`` returns the seconds until the next pass, None for "no reason to hurry";
    ``longest_s`` is the most that is ever waited. ``failed`` is the event logged when a pass
    raises, after which the loop pauses: no wake-up shortens that, so an outage is never met by a
    busy loop.
    """

    def __init__(
        self,
        run_once: Callable[[], float | None],
        *,
        longest_s: float,
        failed: str,
        worker_id: str,
        wake: Event,
    ) -> None:
        """Start nothing yet. ``wake`` is set by whoever wants the next pass now."""
        self._run_once = run_once
        self._longest_s = longest_s
        self._failed = failed
        self._worker_id = worker_id
        self._wake = wake
        self._stop = Event()
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def start(self) -> None:
        """Run the first pass at once, in a greenlet of its own."""
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """Start no further pass."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the pass in progress to end."""
        if self._greenlet is not None:
            self._greenlet.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            # Cleared before the pass: a wake-up during it asks for one more.
            self._wake.clear()
            try:
                next_s = self._run_once()
            except Exception as error:  # noqa: BLE001 - the loop must outlive the database
                _log.error(self._failed, workerId=self._worker_id, error=describe_error(error))
                # Spread, so that workers that failed together do not all come back together.
                spread = random.uniform(0.5, 1)  # noqa: S311 - no secret hangs on it
                self._stop.wait(min(self._longest_s, _PAUSE_S) * spread)
            else:
                self._wake.wait(self._longest_s if next_s is None else min(next_s, self._longest_s))
