"""The states of a job and every legal move between them (docs/job-life.md).

One table, in two halves: what the system does on its own, and what only an operator does. The
guards of all statements derive from it.
"""

from collections.abc import Mapping
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


Moves = Mapping[Status, frozenset[Status]]

AUTOMATIC: Final[Moves] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.PROCESSING}),
        Status.PROCESSING: frozenset(
            {Status.PENDING, Status.SENT, Status.FAILED, Status.DEAD_LETTERED}
        ),
    }
)
OPERATOR: Final[Moves] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.CANCELLED}),
        Status.DEAD_LETTERED: frozenset({Status.PENDING}),
        Status.FAILED: frozenset({Status.PENDING}),
    }
)


def sources(moves: Moves, target: Status) -> frozenset[Status]:
    """Every status that ``moves`` lead from to ``target``."""
    return frozenset(source for source, targets in moves.items() if target in targets)


# A live job has an entry in the queue; an ended one has an outcome in the ledger instead.
LIVE: Final = frozenset(AUTOMATIC)
# How an attempt can end a job.
ENDINGS: Final = AUTOMATIC[Status.PROCESSING] - LIVE

CLAIMABLE: Final = sources(AUTOMATIC, Status.PROCESSING)
CANCELLABLE: Final = sources(OPERATOR, Status.CANCELLED)
REDRIVABLE: Final = sources(OPERATOR, Status.PENDING)
# What is put back to wait: by a retry, a release, recovery.
RETURNABLE: Final = sources(AUTOMATIC, Status.PENDING)
# What an attempt, or the loss of one, can end.
ENDABLE: Final = frozenset().union(*(sources(AUTOMATIC, ending) for ending in ENDINGS))
