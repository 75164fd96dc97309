"""One pass of a worker's webhooks: take what can be sent now, and send all of it.

A budget of its own, apart from deliveries: a bound on what is on its way at once, shrunk when the
receiver is in trouble, and two database connections at most, one to take and one to record.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import gevent
from gevent.pool import Group

from notify_queue.delivery.lease import Lease
from notify_queue.domain.throttle import Throttle
from notify_queue.domain.webhook_event import Dispatch, TryAgain, is_trouble
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.webhooks.record import RecordPosted
from notify_queue.webhooks.send import SendEvent
from notify_queue.webhooks.take import TakeDueEvents

# With events on their way, every freed place could be filled by a pass of one. A few ms gather
# several.
GATHER_S: Final = 0.005
# A receiver that is down and refuses at once could be asked hundreds of times a second, one event
# at a time.
PROBE_S: Final = 0.1

_log = get_logger("webhooks.dispatch")


class Dispatcher:
    """Joins the steps at a bounded concurrency. ``wake`` starts the next pass early."""

    def __init__(
        self,
        take: TakeDueEvents,
        send: SendEvent,
        record: RecordPosted,
        *,
        worker_id: str,
        concurrency: int,
        wake: Callable[[], None],
    ) -> None:
        """Start nothing yet."""
        self._take = take
        self._send = send
        self._record = record
        self._worker_id = worker_id
        self._throttle = Throttle(concurrency, concurrency)
        self._probe_at = 0.0
        self._wake = wake
        self._running = 0
        self._attempts = Group()
        self._more_waits = False

    def run_once(self) -> float | None:
        """Make one pass; return the seconds until the next event is due, None when none waits."""
        if self._running:
            gevent.sleep(GATHER_S)
        early_s = self._probe_at - time.monotonic()
        if self._throttle.now == 1 and early_s > 0:
            return early_s
        room = self._throttle.now - self._running
        if room <= 0:
            # The next attempt that ends wakes us.
            self._more_waits = True
            return None
        taken = self._take(room)
        self._more_waits = taken.full
        for dispatch in taken.dispatches:
            self._running += 1
            self._attempts.start(gevent.Greenlet(self._attempt, dispatch, taken.lease))
        # Those that were given up took no place, and left to others it would stay empty until the
        # next attempt ends.
        return 0.0 if taken.full and self._running < self._throttle.now else taken.next_s

    def drain(self, timeout_s: float) -> int:
        """Wait for attempts, and return how many were not sent and recorded by then."""
        self._attempts.join(timeout=timeout_s)
        return len(self._attempts)

    def _learn(self, *, trouble: bool) -> None:
        """Send more or less at once from now on, and in trouble not so soon."""
        self._throttle = self._throttle.after(trouble=trouble)
        self._probe_at = time.monotonic() + PROBE_S if trouble else 0.0

    def _attempt(self, dispatch: Dispatch, lease: Lease) -> None:
        with ExitStack() as place:
            place.callback(self._leave)
            try:
                # A lease that is over before we begin has made the event somebody else's.
                if not lease.over:
                    posted = self._send(dispatch, lease)
                    self._learn(trouble=is_trouble(posted.answer))
                    # What cannot be recorded yet waits outside: one row that somebody holds must
                    # not keep a worker that sends one at a time from sending the others.
                    self._record(posted, lease, waits=place.close)
                    if isinstance(posted.verdict, TryAgain):
                        # It has a new due time, for which nobody waits yet.
                        self._wake()
            except Exception as error:  # noqa: BLE001 - one event's fault must not reach the others
                _log.error(
                    events.WEBHOOK_DISPATCH_FAILED,
                    workerId=self._worker_id,
                    error=describe_error(error),
                )

    def _leave(self) -> None:
        self._running -= 1
        if self._more_waits:
            self._wake()
