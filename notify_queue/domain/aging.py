"""The starvation bound: urgent work goes first, but not for ever."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from notify_queue.domain.job import Priority


@dataclass(frozen=True, slots=True)
class Aging:
    """How many places of a batch go first to jobs of lower priority due longer than ``after``."""

    places: int
    after: timedelta


def aging_for(limit: int, share: float, after: timedelta) -> Aging:
    """Set aside ``share`` of a batch, at least one place once the batch has two."""
    places = max(1, int(limit * share)) if share > 0 and limit > 1 else 0
    return Aging(places, after)


class Waiting(Protocol):
    """What takes its turn."""

    @property
    def priority(self) -> Priority:
        """How urgent it is."""
        ...

    @property
    def due_at(self) -> datetime:
        """Since when it waits."""
        ...

    @property
    def aged(self) -> bool:
        """Whether a lower priority has kept it waiting for too long."""
        ...


T = TypeVar("T", bound=Waiting)


def in_turn(waiting: Iterable[T], aging: Aging) -> list[T]:
    """Order by turn: the longest due of the aged in the places kept for them, then by priority.

    The same order in which due jobs are listed, for what comes from more than one list.
    """
    by_age = sorted(waiting, key=lambda each: (not each.aged, each.due_at))
    first = [each for each in by_age[: aging.places] if each.aged]
    rest = sorted(by_age[len(first) :], key=lambda each: (-each.priority, each.due_at))
    return first + rest
