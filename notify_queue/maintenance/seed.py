"""Put the example jobs into the database, for whoever sees the product for the first time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from notify_queue.domain.examples import EXAMPLES
from notify_queue.domain.lifecycle import Status
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

_KEYS = [example.key for example in EXAMPLES]


@dataclass(frozen=True, slots=True)
class Seeded:
    """How many examples were written, how many stood there before, and where all stand now."""

    seeded: int
    existing: int
    statuses: Mapping[Status, int]


@dataclass(frozen=True, slots=True)
class Found:
    """How many examples stand there, how many would be written, and where all stand now."""

    existing: int
    missing: int
    statuses: Mapping[Status, int]


@dataclass(frozen=True, slots=True)
class SeedExamples:
    """The use case. Again and again is fine, whatever has become of the jobs meanwhile."""

    unit_of_work: UnitOfWorkFactory
    new_id: Callable[[], UUID]

    def __call__(self, limit: int | None = None) -> Seeded:
        """Write the first ``limit`` examples, those that are not there yet, in one transaction."""
        examples = EXAMPLES[:limit]
        with self.unit_of_work() as unit:
            seeded = unit.seeding.insert([(self.new_id(), example) for example in examples])
            statuses = unit.seeding.statuses(_KEYS)
            unit.commit()
        return Seeded(seeded, len(examples) - seeded, statuses)

    def look(self, limit: int | None = None) -> Found:
        """Write nothing, and say what a call would do."""
        keys = _KEYS[:limit]
        with self.unit_of_work() as unit:
            existing = sum(unit.seeding.statuses(keys).values())
            statuses = unit.seeding.statuses(_KEYS)
        return Found(existing, len(keys) - existing, statuses)
