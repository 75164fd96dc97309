"""Take back the jobs of workers that have died, hung, or lost the database for too long."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from notify_queue.domain.attempt import Ended
from notify_queue.domain.recovery import Recovered, Requeue, recover
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory, concerns_rows

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
            recovered = self._write(
                unit,
                [Recovered(each, recover(each, self.visibility_timeout_s)) for each in expired],
            )
            full = len(expired) == limit and bool(recovered)
            next_s = None if full else unit.recovery.seconds_until_next(lease)
            if next_s is not None and next_s <= 0:
                next_s = _HELD_S
            unit.commit()
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

    def _write(self, unit: UnitOfWork, decided: list[Recovered]) -> list[Recovered]:
        """Write all at once, or one by one when the server refuses one of them.

        What cannot be written must not keep the others waiting: it stays as it is, and is tried
        again at the next pass.
        """
        lease = timedelta(seconds=self.visibility_timeout_s)
        try:
            with unit.savepoint():
                written = unit.recovery.write(decided, lease)
        except Exception as error:
            if not concerns_rows(error):
                raise
            if len(decided) == 1:
                self._refused(decided[0], error)
                return []
            return [done for each in decided for done in self._write(unit, [each])]
        return [each for each in decided if each.claim.job_id in written]

    def _refused(self, recovered: Recovered, error: Exception) -> None:
        _log.error(
            events.JOB_RECOVERY_FAILED,
            workerId=self.worker_id,
            jobId=str(recovered.claim.job_id),
            attempt=recovered.claim.attempt,
            error=describe_error(error),
        )

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
