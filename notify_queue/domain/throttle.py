"""How many webhooks may be on their way at once, by how the receiver bears them."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Throttle:
    """Between one and ``most``: halved by every sign of trouble, one more for every answer.

    So a receiver that is down is asked by one event at a time, which costs the deliveries nothing
    and the events that wait no attempt; and when it is back, twice as many are sent each round.
    """

    most: int
    now: int

    def after(self, *, trouble: bool) -> Self:
        """What is allowed after one more attempt."""
        if trouble:
            return replace(self, now=max(self.now // 2, 1))
        return replace(self, now=min(self.now + 1, self.most))
