"""The starvation bound: urgent work goes first, but not for ever."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Aging:
    """How many places of a batch go first to jobs of lower priority due longer than ``after``."""

    places: int
    after: timedelta


def aging_for(limit: int, share: float, after: timedelta) -> Aging:
    """Set aside ``share`` of a batch, at least one place once the batch has two."""
    places = max(1, int(limit * share)) if share > 0 and limit > 1 else 0
    return Aging(places, after)
