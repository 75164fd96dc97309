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

    def look(self) -> Seeded:
        """Write nothing."""
        with self.unit_of_work() as unit:
            statuses = unit.seeding.statuses(_KEYS)
        return Seeded(0, sum(statuses.values()), statuses)
