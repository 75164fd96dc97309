"""Take as many due events as can be sent now."""

import time
from dataclasses import dataclass
from datetime import timedelta

from notify_queue.delivery.lease import Lease
from notify_queue.domain.webhook_event import LOST, Dispatch, DueEvent, is_spent
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

_log = get_logger("webhooks.take")


@dataclass(frozen=True, slots=True)
class Taken:
    """What one pass took. ``full`` says that more may be due.

    ``next_s`` is how long until another event is due, None when none waits.
    """

    dispatches: list[Dispatch]
    lease: Lease
    full: bool
    next_s: float | None


@dataclass(frozen=True, slots=True)
class TakeDueEvents:
    """The step. ``lease_s`` is how long an event is ours, ``max_attempts`` the budget of each."""

    unit_of_work: UnitOfWorkFactory
    lease_s: int
    max_attempts: int

    def __call__(self, limit: int) -> Taken:
        """Lease up to ``limit`` due events in one short transaction.

        An attempt is counted here and not when it has ended, so an event that kills whoever sends
        it has an end too: with its budget spent it is given up instead.
        """
        with self.unit_of_work() as unit:
            due = unit.outbox.lock_due(limit)
            spent = [each for each in due if is_spent(each, self.max_attempts)]
            fresh = [each for each in due if not is_spent(each, self.max_attempts)]
            if spent:
                unit.outbox.give_up([(each.event.event_id, _last_error(each)) for each in spent])
            # Just before the database's own, which it must not outlast. Begun any earlier it would
            # lack what we had to wait for until here, and nothing could be sent in time.
            lease = Lease(time.monotonic() + self.lease_s)
            taken = unit.outbox.take(fresh, timedelta(seconds=self.lease_s)) if fresh else []
            full = len(due) == limit
            next_s = None if full else unit.outbox.seconds_until_next()
            unit.commit()
        for each in spent:
            _log.error(
                events.WEBHOOK_FAILED,
                eventId=str(each.event.event_id),
                jobId=str(each.event.job_id),
                dispatchAttempt=each.attempts,
                error=_last_error(each),
                gaveUp=True,
            )
        return Taken(taken, lease, full, next_s)


def _last_error(due: DueEvent) -> str | None:
    return LOST if due.lost else due.last_error
