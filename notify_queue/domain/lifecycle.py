"""The states of a job and the legal moves between them (docs/job-life.md)."""

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

# What happens only because somebody asked for it. Kept apart: merging the two tables would let
# a worker's statement do what only an operator may.
OPERATOR: Final = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.CANCELLED}),
        Status.FAILED: frozenset({Status.PENDING}),
        Status.DEAD_LETTERED: frozenset({Status.PENDING}),
    }
)

# A live job has an entry in the queue; an ended one has an outcome in the ledger instead.
LIVE: Final = frozenset(AUTOMATIC)
OUTCOMES: Final = tuple(status for status in Status if status not in LIVE)
