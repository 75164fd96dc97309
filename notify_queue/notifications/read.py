"""Look at one notification."""

from dataclasses import dataclass
from uuid import UUID

from notify_queue.domain.errors import NotFoundError
from notify_queue.domain.job import Job
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory


@dataclass(frozen=True, slots=True)
class ReadNotification:
    """The use case."""

    unit_of_work: UnitOfWorkFactory

    def __call__(self, job_id: UUID) -> Job:
        """Return the job as it is now.

        Raises:
            NotFoundError: no job has this id.
        """
        with self.unit_of_work() as unit:
            job = unit.reading.by_id(job_id)
        if job is None:
            raise NotFoundError(job_id)
        return job
