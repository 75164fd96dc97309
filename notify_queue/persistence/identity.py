"""Identifiers made by the application."""

import secrets
import threading
import time
from uuid import UUID

_lock = threading.Lock()
_last_stamp = 0


def new_id() -> UUID:
    """Make a UUIDv7 (RFC 9562, 5.7): keys that grow with time land on few index pages.

    The 12 bits after the version hold the fraction of the millisecond and are pushed up when the
    clock stands still, so the ids of one process grow strictly. Nothing orders work by them.
    """
    global _last_stamp  # noqa: PLW0603 - one sequence a process is the point
    stamp = (time.time_ns() << 12) // 1_000_000
    with _lock:
        _last_stamp = stamp = max(stamp, _last_stamp + 1)
    milliseconds, fraction = stamp >> 12, stamp & 0xFFF
    head = (milliseconds << 16 | 0x7000 | fraction) << 64
    return UUID(int=head | 0b10 << 62 | secrets.randbits(62))
