"""Keep the books of the rate limit: forget old attempts, and follow a limit that was changed."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from notify_queue.domain.rate_limit import RateLimit
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

# One pass of each kind: a few milliseconds of row locks.
PASS_SIZE: Final = 500

_log = get_logger("maintenance.limits")


@dataclass(frozen=True, slots=True)
class Tidied:
    """What one pass did: ``let_go`` if jobs may have become due, ``more`` if it was full."""

    let_go: bool
    more: bool


@dataclass(frozen=True, slots=True)
class TidyLimits:
    """The use case, for one worker. ``rate_limit`` is None when the limit is switched off.

    What happened within the ``window`` is kept then too: the limit may be switched on again.
    """

    unit_of_work: UnitOfWorkFactory
    worker_id: str
    rate_limit: RateLimit | None
    window: timedelta

    def __call__(self) -> Tidied:
        """Make one bounded pass of each kind."""
        done = self._let_all_go() if self.rate_limit is None else self._follow(self.rate_limit)
        return Tidied(done.let_go, self._prune() or done.more)

    def _prune(self) -> bool:
        """Forget attempts that ended a window ago: they count no more. True if more may be left."""
        with self.unit_of_work() as unit:
            pruned = unit.recipients.prune(self.window, PASS_SIZE)
            unit.commit()
        return pruned == PASS_SIZE

    def _follow(self, limit: RateLimit) -> Tidied:
        """Have gates looked at again that were set under another limit.

        After it was raised, or its window shortened, they would stay shut for too long.
        """
        with self.unit_of_work() as unit:
            found = unit.gates.set_under_another(limit, PASS_SIZE)
            ours = unit.recipients.try_lock(found) if found else set()
            if ours:
                unit.gates.open_now(ours, limit)
            unit.commit()
        # Those that somebody else decides about are found again: with nothing but them, later.
        return Tidied(bool(ours), more=bool(ours) and len(found) == PASS_SIZE)

    def _let_all_go(self) -> Tidied:
        """Without a limit nobody opens gates: whoever is parked goes back among the due."""
        with self.unit_of_work() as unit:
            parked = unit.parking.lock_some(PASS_SIZE)
            if parked:
                unit.parking.unpark(parked)
            recipients = unit.gates.some(PASS_SIZE)
            ours = unit.recipients.try_lock(recipients) if recipients else set()
            closed = unit.gates.close_deserted(ours) if ours else set()
            unit.commit()
        if parked:
            _log.info(events.JOBS_UNPARKED, workerId=self.worker_id, count=len(parked))
        got_on = len(parked) + len(closed) > 0
        return Tidied(bool(parked), got_on and PASS_SIZE in {len(parked), len(recipients)})
