"""Pages of a listing, newest job first, and the cursor that leads from one to the next.

A cursor names the last job shown by its exact place in the order, so a page begins strictly below
it whatever was added meanwhile. It is signed: whatever a caller changes about it is noticed before
any of it is read.
"""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

from notify_queue.domain.errors import InvalidCursorError
from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import Status

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Microseconds since 1970, then the id: PostgreSQL keeps no finer time.
_PLACE: Final = struct.Struct(">q16s")
_SIGNATURE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job stands in the order of a listing."""

    created_at: datetime
    job_id: UUID


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs a listing shows; None is no restriction."""

    status: Status | None = None
    recipient: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs, and the cursor of the next page: None when this is the last."""

    items: list[Job]
    next_cursor: str | None


def place_of(job: Job) -> Place:
    """Return where a job stands."""
    return Place(job.created_at, job.id)


def encode_cursor(place: Place, key: bytes) -> str:
    """Write a place as a cursor: 54 characters that are safe in a URL."""
    packed = _PLACE.pack((place.created_at - _EPOCH) // _MICROSECOND, place.job_id.bytes)
    return urlsafe_b64encode(packed + _signature(packed, key)).decode().rstrip("=")


def decode_cursor(cursor: str, key: bytes) -> Place:
    """Read a cursor that :func:`encode_cursor` wrote with the same key.

    Raises:
        InvalidCursorError: any other text.
    """
    try:
        signed = urlsafe_b64decode(cursor.encode("ascii") + b"==")
    except ValueError as error:
        raise InvalidCursorError from error
    packed = signed[: _PLACE.size]
    if not hmac.compare_digest(signed[_PLACE.size :], _signature(packed, key)):
        raise InvalidCursorError
    microseconds, job_id = _PLACE.unpack(packed)
    place = Place(_EPOCH + microseconds * _MICROSECOND, UUID(bytes=job_id))
    # Base64 has more than one spelling for some bytes, and decoders pass over foreign characters.
    if encode_cursor(place, key) != cursor:
        raise InvalidCursorError
    return place


def _signature(packed: bytes, key: bytes) -> bytes:
    return hmac.digest(key, packed, sha256)[:_SIGNATURE_BYTES]
