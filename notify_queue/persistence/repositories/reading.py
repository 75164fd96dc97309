"""Single jobs as callers and operators see them."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import func, literal, select
from sqlalchemy.orm import Session

from notify_queue.domain.job import Job
from notify_queue.persistence.as_job import as_job
from notify_queue.persistence.models import JobOverview


class Reading:
    """Reads single jobs. Takes no lock."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def by_id(self, job_id: UUID) -> Job | None:
        """The job as it is now, or None."""
        row = self._session.scalar(select(JobOverview).where(JobOverview.id == job_id))
        return None if row is None else as_job(row)

    def by_key(self, idempotency_key: str) -> tuple[Job, str | None] | None:
        """The job under an idempotency key and its fingerprint (None for jobs without one)."""
        row = self._session.scalar(
            select(JobOverview).where(JobOverview.idempotency_key == idempotency_key)
        )
        return None if row is None else (as_job(row), row.request_fingerprint)

    def now(self) -> datetime:
        """The database's clock."""
        moment: datetime = self._session.scalars(select(func.clock_timestamp())).one()
        return moment

    def ping(self) -> None:
        """The least that the database can be asked. Raises when it does not answer."""
        self._session.execute(select(literal(1)))
