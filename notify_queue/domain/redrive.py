"""Which ended jobs, and which given-up webhook events, an operator puts back to work."""

from dataclasses import dataclass
from datetime import datetime

from notify_queue.domain.lifecycle import REDRIVABLE, Status
from notify_queue.domain.page import Place


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs that ended as ``status``, oldest first; None is no restriction.

    ``ended_since`` leaves out what ended before it. The last two are for a run over many batches:
    with ``ended_before``, its beginning, it comes to each job once, however soon it ends again, and
    to no job that ends meanwhile; ``after`` goes on behind a job of the order, so that no batch
    reads again what those before it have read.
    """

    status: Status = Status.DEAD_LETTERED
    recipient: str | None = None
    ended_since: datetime | None = None
    ended_before: datetime | None = None
    after: Place | None = None

    def __post_init__(self) -> None:
        """Refuse what no operator may put back."""
        if self.status not in REDRIVABLE:
            raise ValueError(f"a job that is {self.status} cannot be redriven")


@dataclass(frozen=True, slots=True)
class GivenUpEvents:
    """Webhook events that were given up at ``since`` or later; None is no restriction.

    ``before`` is the beginning of a run over many batches: so it comes to each event once, however
    soon that is given up again.
    """

    since: datetime | None = None
    before: datetime | None = None
