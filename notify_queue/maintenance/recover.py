"""Take back the jobs of workers that have died, hung, or lost the database for too long."""

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from notify_queue.domain.attempt import Ended
from notify_queue.domain.recovery import Recovered, Requeue, recover
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory, refuses_a_row

# One pass: a few milliseconds of row locks, so that a large outage is mended in short steps.
PASS_SIZE: Final = 500
# An expired claim that somebody holds a lock on is passed over; until the next look at it.
_HELD_S: Final = 1.0
# A claim that the server refused to let go is tried again after this.
_LEFT_ALONE_S: Final = 60.0

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
    """The use case, for one worker or an operator; ``worker_id`` names either in the log.

    ``limited`` lets every job that is taken back hold a slot of its recipient: nobody knows whether
    its provider was called. ``refused`` holds what the server would not let us write, and when it
    said so (monotonic, s).
    """

    unit_of_work: UnitOfWorkFactory
    worker_id: str
    visibility_timeout_s: int
    limited: bool
    refused: dict[UUID, float] = field(default_factory=dict)

    def __call__(self, limit: int = PASS_SIZE) -> Pass:
        """Take back up to ``limit`` expired claims in one short transaction."""
        lease = timedelta(seconds=self.visibility_timeout_s)
        with self.unit_of_work() as unit:
            expired = unit.recovery.lock_expired(limit, lease, self._left_alone())
            recovered = self._write(
                unit,
                [Recovered(each, recover(each, self.visibility_timeout_s)) for each in expired],
            )
            full = len(expired) == limit
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
        """Write all at once, or half by half when the server refuses one of them.

        What cannot be written must keep no other waiting: it stays as it is and is left alone for a
        while.
        """
        lease = timedelta(seconds=self.visibility_timeout_s)
        try:
            # A part of the transaction: what a refused half has written is taken back with it.
            with unit.savepoint():
                written = unit.recovery.write(decided, lease, limited=self.limited)
        except Exception as error:
            if not refuses_a_row(error):
                raise
            if len(decided) == 1:
                self._refuse(decided[0], error)
                return []
            middle = len(decided) // 2
            return self._write(unit, decided[:middle]) + self._write(unit, decided[middle:])
        return [each for each in decided if each.claim.job_id in written]

    def _left_alone(self) -> list[UUID]:
        now = time.monotonic()
        return [job_id for job_id, since in self.refused.items() if now - since < _LEFT_ALONE_S]

    def _refuse(self, recovered: Recovered, error: Exception) -> None:
        self.refused[recovered.claim.job_id] = time.monotonic()
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
