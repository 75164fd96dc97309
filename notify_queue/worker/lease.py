"""How long a claim is ours, by a clock that cannot be set back."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """The end of a batch's claims, as ``time.monotonic()`` will read it.

    Counted from before the claim was asked for, so it ends here no later than in the database.
    """

    ends: float

    def has_room_for(self, milliseconds: float) -> bool:
        """Whether something that takes this long would end within the lease."""
        return time.monotonic() + milliseconds / 1000 < self.ends

    @property
    def over(self) -> bool:
        """Whether recovery may have given the jobs to somebody else."""
        return not self.has_room_for(0)
