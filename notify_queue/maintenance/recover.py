"""Take back the jobs of workers that have died, hung, or lost the database for too long."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from notify_queue.domain.attempt import Ended
from notify_queue.domain.recovery import Recovered, Requeue, recover
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

# One pass: a few milliseconds of row locks, so that a large outage is mended in short steps.
PASS_SIZE: Final = 500
# An expired claim that somebody holds a lock on is passed over; until the next look at it.
_HELD_S: Final = 1.0

_log = get_logger("maintenance.recover")


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did, in jobs. ``full`` says that more may be left.

    ``next_s`` is how long until the next claim expires, None when nothing is claimed.
    """

    requeued: int
    dead_lettered: int
    full: bool
    next_s: float | None


@dataclass(frozen=True, slots=True)
class RecoverExpired:
    """The use case, for one worker or an operator; ``worker_id`` names either in the log."""

    unit_of_work: UnitOfWorkFactory
    worker_id: str
    visibility_timeout_s: int

    def __call__(self, limit: int = PASS_SIZE) -> Pass:
        """Take back up to ``limit`` expired claims in one short transaction."""
        lease = timedelta(seconds=self.visibility_timeout_s)
        with self.unit_of_work() as unit:
            expired = unit.recovery.lock_expired(limit, lease)
            decided = [
                Recovered(claim, recover(claim, self.visibility_timeout_s)) for claim in expired
            ]
            written = unit.recovery.write(decided, lease)
            full = len(expired) == limit
            next_s = None if full else unit.recovery.seconds_until_next(lease)
            if next_s is not None and next_s <= 0:
                next_s = _HELD_S
            unit.commit()
        recovered = [each for each in decided if each.claim.job_id in written]
        for each in recovered:
            self._report(each)
        dead_lettered = sum(isinstance(each.recovery, Ended) for each in recovered)
        requeued = len(recovered) - dead_lettered
        if recovered:
            _log.warn(
                events.JOBS_RECOVERED,
                workerId=self.worker_id,
                requeued=requeued,
                deadLettered=dead_lettered,
            )
        return Pass(requeued, dead_lettered, full, next_s)

    def count(self) -> int:
        """How many claims a pass would find expired now."""
        with self.unit_of_work() as unit:
            return unit.recovery.count_expired(timedelta(seconds=self.visibility_timeout_s))

    def _report(self, recovered: Recovered) -> None:
        """One line a job: whoever looks for a job by its id finds out what happened to it."""
        claim = recovered.claim
        fields: dict[str, object] = {
            "workerId": self.worker_id,
            "jobId": str(claim.job_id),
            "attempt": claim.attempt,
            "lostBy": claim.worker_id,
            "error": recovered.recovery.error,
        }
        match recovered.recovery:
            case Requeue(_, reconcile):
                _log.warn(events.JOB_RECOVERED, reconcile=reconcile, **fields)
            case Ended():
                _log.warn(events.JOB_DEAD_LETTER, **fields)
