"""A job that may have killed its workers is tried alone.

When the lease of a job's last attempt ends, it is granted one attempt more, and then it is a
suspect: every worker that had it may have died of it. So may any other job have killed them, and
then this one has done nothing. Tried alone it harms nobody else and nobody else harms it: whoever
is innocent is delivered, whatever else was in the batches that it was lost with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Due:
    """A job that can be claimed now."""

    job_id: UUID
    suspect: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is claimed of the due jobs.

    ``alone`` says that nothing else may run beside it, ``suspect_waits`` that the worker shall
    begin nothing more until it is idle, so that the next suspect has its turn.
    """

    due: list[Due]
    alone: bool
    suspect_waits: bool


def choose(due: Sequence[Due], *, idle: bool) -> Chosen:
    """Choose among due jobs, most urgent first; ``idle`` if the worker has nothing on its hands."""
    suspects = [each for each in due if each.suspect]
    if suspects and idle:
        return Chosen(suspects[:1], alone=True, suspect_waits=len(suspects) > 1)
    others = [each for each in due if not each.suspect]
    return Chosen(others, alone=False, suspect_waits=bool(suspects))
