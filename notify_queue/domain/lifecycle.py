"""The states of a job and the moves that it makes by itself (docs/job-life.md)."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Status(StrEnum):
    """Where a job stands. The order is the one error messages list them in."""

    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    SENT = "SENT"
    FAILED = "FAILED"
    DEAD_LETTERED = "DEAD_LETTERED"
    CANCELLED = "CANCELLED"


# What the system does on its own.
AUTOMATIC: Final = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.PROCESSING}),
        Status.PROCESSING: frozenset(
            {Status.PENDING, Status.SENT, Status.FAILED, Status.DEAD_LETTERED}
        ),
    }
)

# A live job has an entry in the queue; an ended one has an outcome in the ledger instead.
LIVE: Final = frozenset(AUTOMATIC)
# How an attempt can end a job.
ENDINGS: Final = AUTOMATIC[Status.PROCESSING] - LIVE
