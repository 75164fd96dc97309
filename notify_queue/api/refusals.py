"""What the API itself refuses, before a use case is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

# Python's own phrase for 413 has changed from version to version.
_PHRASES: Final = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Payload Too Large"}


def phrase(status: HTTPStatus) -> str:
    """The words of a status, as the ``error`` of an answer has them."""
    return _PHRASES.get(status, status.phrase)


@dataclass(frozen=True, slots=True)
class FieldError:
    """Every rule that one field of a request breaks."""

    field: str
    errors: list[str]


class RequestRefusedError(Exception):
    """A request that cannot be understood. Its text is safe to show to the caller."""

    def __init__(
        self, status: HTTPStatus, message: str, details: Sequence[FieldError] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.details = list(details)
