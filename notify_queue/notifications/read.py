"""Look at notifications: one by its id, or a page of them."""

from dataclasses import dataclass
from uuid import UUID

from notify_queue.domain.errors import NotFoundError
from notify_queue.domain.job import Job
from notify_queue.domain.page import Filter, Page, decode_cursor, encode_cursor
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory


@dataclass(frozen=True, slots=True)
class ReadNotification:
    """The use case for one."""

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


@dataclass(frozen=True, slots=True)
class ListNotifications:
    """The use case for a page."""

    unit_of_work: UnitOfWorkFactory

    def __call__(self, wanted: Filter, limit: int, cursor: str | None = None) -> Page:
        """Return up to ``limit`` jobs, newest first, from behind ``cursor`` or from the newest.

        Raises:
            InvalidCursorError: the cursor is not one that a page came with.
        """
        with self.unit_of_work() as unit:
            key = unit.listing.cursor_key()
            after = None if cursor is None else decode_cursor(cursor, key)
            # One more than shown tells whether there is a next page.
            found = unit.listing.page(wanted, after, limit + 1)
        shown = found[:limit]
        last = shown[-1][0] if len(found) > limit else None
        return Page(
            [job for _, job in shown if job is not None],
            None if last is None else encode_cursor(last, key),
        )
