"""The id of a job, as a path segment."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from notify_queue.api.refusals import RequestRefusedError

_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"|00000000-0000-0000-0000-000000000000"
    r"|ffffffff-ffff-ffff-ffff-ffffffffffff",
    re.IGNORECASE | re.ASCII,
)
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


def is_uuid(text: str) -> bool:
    """Whether this is a UUID of version 1 to 8, the nil UUID or the max UUID, in full form."""
    return _UUID.fullmatch(text) is not None


def decode_job_id(segment: str) -> str:
    """Undo the percent-encoding of a path segment and check that it spells a UUID.

    Raises:
        RequestRefusedError: 400, for a broken escape or anything but a UUID.
    """
    try:
        given = _unquote(segment)
    except ValueError as error:
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, f"Failed to decode param '{segment}'"
        ) from error
    if not is_uuid(given):
        raise RequestRefusedError(HTTPStatus.BAD_REQUEST, "Validation failed (uuid is expected)")
    return given


def _unquote(segment: str) -> str:
    if _BROKEN_ESCAPE.search(segment):
        raise ValueError
    return unquote(segment, errors="strict")
