"""Put webhook events that were given up back to work."""

from dataclasses import dataclass
from datetime import datetime

from notify_queue.domain.redrive import GivenUpEvents
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

_log = get_logger("webhooks")


@dataclass(frozen=True, slots=True)
class ReviveEvents:
    """The use case, for an operator."""

    unit_of_work: UnitOfWorkFactory

    def batch(self, selection: GivenUpEvents, limit: int) -> int:
        """Revive up to ``limit`` of the selected events and return how many."""
        with self.unit_of_work() as unit:
            listed = unit.revival.lock(selection, limit)
            if listed:
                unit.revival.revive(listed)
            unit.commit()
        return len(listed)

    def remaining(self, selection: GivenUpEvents) -> int:
        """How many events are selected now, those that somebody holds at the moment included."""
        with self.unit_of_work() as unit:
            return unit.revival.count(selection)

    def now(self) -> datetime:
        """The database's clock, for ``GivenUpEvents.before``."""
        with self.unit_of_work() as unit:
            return unit.reading.now()


def report_revival(revived: int, remaining: int, reason: str | None) -> None:
    """Write the one line of a run; ``reason`` is the operator's own word for it."""
    _log.warn(events.WEBHOOKS_REVIVED, revived=revived, remaining=remaining, reason=reason)
