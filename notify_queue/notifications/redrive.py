"""Put notifications that have ended badly back to work: one by its id, or many, oldest first."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from notify_queue.domain.errors import NotFoundError, NotRedrivableError
from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import REDRIVABLE
from notify_queue.domain.redrive import Selection
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory

_log = get_logger("notifications")


@dataclass(frozen=True, slots=True)
class RedriveNotification:
    """The use case for one. ``max_attempts`` is the fresh budget; ``hint`` as in scheduling."""

    unit_of_work: UnitOfWorkFactory
    max_attempts: int
    hint: Callable[[float], None]

    def __call__(self, job_id: UUID) -> Job:
        """Return the job as it was put back.

        Raises:
            NotFoundError: no job has this id.
            NotRedrivableError: the job has not ended badly.
        """
        while True:
            with self.unit_of_work() as unit:
                redriven = unit.operations.redrive([job_id], self.max_attempts)
                job = None if redriven else unit.reading.by_id(job_id)
                unit.commit()
            if redriven:
                _report(redriven)
                self.hint(0)
                return redriven[0]
            if job is None:
                raise NotFoundError(job_id)
            if job.status not in REDRIVABLE:
                raise NotRedrivableError(job_id, job.status)
            # It was still live when we tried and has ended since: try again.


@dataclass(frozen=True, slots=True)
class Redriven:
    """What a redrive of many came to, in jobs."""

    retried: int
    remaining: int


@dataclass(frozen=True, slots=True)
class RedriveNotifications:
    """The use case for many. Calls that run at once share the jobs and take none twice."""

    unit_of_work: UnitOfWorkFactory
    max_attempts: int
    hint: Callable[[float], None]

    def __call__(self, selection: Selection, limit: int) -> Redriven:
        """Put up to ``limit`` of the selected jobs back and count what is left of them.

        One transaction: a call that cannot be answered has put nothing back.
        """
        with self.unit_of_work() as unit:
            jobs = self._put_back(unit, selection, limit)
            remaining = unit.operations.count_redrivable(selection)
            unit.commit()
        self._tell(jobs)
        redriven = Redriven(len(jobs), remaining)
        report_redrive(selection, redriven)
        return redriven

    def batch(self, selection: Selection, limit: int, reason: str | None = None) -> list[Job]:
        """Put up to ``limit`` of the selected jobs back and return them as they were put back.

        ``reason`` is the operator's own word for it, for the log.
        """
        with self.unit_of_work() as unit:
            jobs = self._put_back(unit, selection, limit)
            unit.commit()
        self._tell(jobs, reason)
        return jobs

    def remaining(self, selection: Selection) -> int:
        """How many jobs are selected now, those that another call is just redriving included."""
        with self.unit_of_work() as unit:
            return unit.operations.count_redrivable(selection)

    def _put_back(self, unit: UnitOfWork, selection: Selection, limit: int) -> list[Job]:
        listed = unit.operations.lock_redrivable(selection, limit)
        return unit.operations.redrive(listed, self.max_attempts) if listed else []

    def now(self) -> datetime:
        """The database's clock, for ``Selection.ended_before``."""
        with self.unit_of_work() as unit:
            return unit.reading.now()

    def _tell(self, jobs: list[Job], reason: str | None = None) -> None:
        if jobs:
            _report(jobs, reason)
            self.hint(0)


def report_redrive(selection: Selection, redriven: Redriven, reason: str | None = None) -> None:
    """Write the one line of a redrive of many; ``reason`` is the operator's own word for it."""
    _log.warn(
        events.JOBS_REDRIVEN,
        status=selection.status.value,
        byRecipient=selection.recipient is not None,
        retried=redriven.retried,
        remaining=redriven.remaining,
        reason=reason,
    )


def _report(redriven: list[Job], reason: str | None = None) -> None:
    for job in redriven:
        _log.warn(
            events.JOB_REDRIVEN,
            jobId=str(job.id),
            redriveCount=job.redrive_count,
            previousError=job.last_error,
            reason=reason,
        )
