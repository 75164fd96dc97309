"""What a use case may refuse. The API maps each class to a status; the text is the answer's."""

from collections.abc import Iterable
from uuid import UUID

from notify_queue.domain.lifecycle import CANCELLABLE, REDRIVABLE, Status


class RefusedError(Exception):
    """A request that is understood and cannot be done. Its text is safe to show to the caller."""


class NotFoundError(RefusedError):
    """No job has this id."""

    def __init__(self, job_id: UUID | str) -> None:
        super().__init__(f"Notification {job_id} not found")


class KeyReusedError(RefusedError):
    """The idempotency key stands for a different request already."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f'Idempotency key "{key}" was already used for a different notification request'
        )


class ScheduleTooFarError(RefusedError):
    """The due time lies beyond the horizon."""

    def __init__(self, days: int) -> None:
        super().__init__(f"sendAt must be within {days} days from now")


class NotCancellableError(RefusedError):
    """The job has begun or has ended."""

    def __init__(self, job_id: UUID | str, status: Status) -> None:
        super().__init__(
            f"Notification {job_id} is {status}; only {_words(CANCELLABLE)} jobs can be cancelled"
        )
        self.status = status


class NotRedrivableError(RefusedError):
    """The job has not ended badly."""

    def __init__(self, job_id: UUID | str, status: Status) -> None:
        super().__init__(
            f"Notification {job_id} is {status}; only {_words(REDRIVABLE)} jobs can be retried"
        )
        self.status = status


class InvalidCursorError(RefusedError):
    """The cursor is not one that a page came with."""

    def __init__(self) -> None:
        super().__init__("cursor is not valid; use the nextCursor from a previous page")


class BadSignatureError(RefusedError):
    """A webhook was not signed by who knows the secret, or not lately."""

    def __init__(self) -> None:
        super().__init__("Webhook signature is not valid")


def _words(statuses: Iterable[Status]) -> str:
    return " or ".join(sorted(statuses))
