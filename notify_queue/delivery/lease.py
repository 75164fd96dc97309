"""How long a claim is ours, by a clock that cannot be set back."""

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The end of a batch's claims, as ``time.monotonic()`` will read it.

    Counted from before the claim was asked for, so it ends here no later than in the database.
    """

    ends: float

    @property
    def left_ms(self) -> int:
        """What is left of it, rounded down; negative when it is over."""
        return math.floor((self.ends - time.monotonic()) * 1000)

    @property
    def over(self) -> bool:
        """Whether recovery may have given the jobs to somebody else."""
        return self.left_ms <= 0
