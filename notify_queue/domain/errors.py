"""What a use case may refuse. The API maps each class to a status; the text is the answer's."""

from uuid import UUID


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
