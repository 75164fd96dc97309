"""Take a notification in, once per idempotency key."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from notify_queue.domain.errors import KeyReusedError, ScheduleTooFarError
from notify_queue.domain.fingerprint import fingerprint
from notify_queue.domain.job import Job, NewJob, NotificationRequest
from notify_queue.domain.schedule import HORIZON_DAYS, within_horizon
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The job, and whether the request had been made before."""

    job: Job
    replayed: bool


@dataclass(frozen=True, slots=True)
class ScheduleNotification:
    """The use case. ``max_attempts`` is the budget of a new job; ``wall_clock`` is in UTC.

    ``hint`` is told, after the commit, in how many seconds a new job is due.
    """

    unit_of_work: UnitOfWorkFactory
    new_id: Callable[[], UUID]
    wall_clock: Callable[[], datetime]
    hint: Callable[[float], None]
    max_attempts: int

    def __call__(self, request: NotificationRequest) -> Scheduled:
        """Write the job, or find the one that this request made before.

        Raises:
            ScheduleTooFarError: ``send_at`` lies beyond the horizon.
            KeyReusedError: the idempotency key stands for another request.
        """
        if request.send_at and not within_horizon(request.send_at, self.wall_clock()):
            raise ScheduleTooFarError(HORIZON_DAYS)
        new = NewJob(self.new_id(), request, fingerprint(request), self.max_attempts)
        with self.unit_of_work() as unit:
            written = unit.intake.insert(new)
            if written is None:
                return Scheduled(_stored(unit, new), replayed=True)
            unit.commit()
        job, due_in_s = written
        self.hint(due_in_s)
        return Scheduled(job, replayed=False)


def _stored(unit: UnitOfWork, new: NewJob) -> Job:
    """The job that holds the key, as it is now.

    It is committed and this statement sees it: the insert has waited for whoever wrote it.
    """
    key = new.request.idempotency_key
    found = unit.reading.by_key(key)
    if found is None:
        raise LookupError("the job under a taken idempotency key is gone")
    job, stored_fingerprint = found
    if stored_fingerprint not in {None, new.fingerprint}:
        raise KeyReusedError(key)
    return job
