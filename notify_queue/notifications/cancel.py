"""Cancel a notification that waits."""

from dataclasses import dataclass
from uuid import UUID

from notify_queue.domain.errors import NotCancellableError, NotFoundError
from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import CANCELLABLE, Status
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

_log = get_logger("notifications")


@dataclass(frozen=True, slots=True)
class CancelNotification:
    """The use case. Cancelling twice is cancelling once."""

    unit_of_work: UnitOfWorkFactory

    def __call__(self, job_id: UUID) -> Job:
        """Return the job as it was cancelled, now or before.

        Raises:
            NotFoundError: no job has this id.
            NotCancellableError: the job has begun or has ended.
        """
        while True:
            with self.unit_of_work() as unit:
                cancelled = unit.operations.cancel(job_id)
                job = cancelled or unit.reading.by_id(job_id)
                unit.commit()
            if cancelled:
                _log.info(events.JOB_CANCELLED, jobId=str(job_id))
                return cancelled
            if job is None:
                raise NotFoundError(job_id)
            if job.status is Status.CANCELLED:
                return job
            if job.status not in CANCELLABLE:
                raise NotCancellableError(job_id, job.status)
            # It was being delivered when we tried and waits again by now: try again.
