"""Much work in small steps: how large each is, how long to wait before the next, when it is over.

Each step is a short transaction of its own. A run that ends between two of them has done some of
the work whole and left the rest untouched.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from notify_queue.domain.page import Place

# Enough to be quick, and few enough that the locks of one batch last milliseconds.
BATCH_SIZE: Final = 500


@dataclass(frozen=True, slots=True)
class Pace:
    """Jobs in one batch at most, and the pause after it in s. ``once`` is a single batch."""

    size: int
    pause_s: float
    once: bool = False


def pace(pause_s: float, rate: int | None = None) -> Pace:
    """Choose batches for ``rate`` jobs in any second at most, None for no bound.

    A second that begins anywhere sees as many whole batches as pauses fit into it, so both the size
    and the pause are made for a whole number of batches a second.
    """
    if rate is None:
        return Pace(BATCH_SIZE, pause_s)
    batches = math.ceil(rate / BATCH_SIZE)
    return Pace(rate // batches, max(pause_s, 1 / batches))


class Batch(NamedTuple):
    """The jobs that were done in a batch, and whether it is worth while to begin another."""

    done: int
    more: bool


def in_batches(
    batch: Callable[[int], Batch], pace: Pace, limit: int | None, wait: Callable[[float], bool]
) -> None:
    """Call ``batch(size)`` as long as there is more.

    ``limit`` is for the whole run, None for no bound. ``wait(s)`` pauses and says whether the run
    shall stop.
    """
    done = 0
    while True:
        got = batch(pace.size if limit is None else min(pace.size, limit - done))
        done += got.done
        if pace.once or not got.more or done == limit or wait(pace.pause_s):
            return


@dataclass(slots=True)
class Sweeps:
    """Batches that follow each other through an order of jobs, again and again from its start.

    ``take(after, size)`` does up to ``size`` jobs behind ``after``, None for the start, and returns
    where they stood. What it passed over, since somebody held it for a moment, is met again by the
    next sweep; the end is a whole sweep that finds nothing.
    """

    take: Callable[[Place | None, int], Sequence[Place]]
    _after: Place | None = None

    def batch(self, size: int) -> Batch:
        """Do ``size`` jobs, or fewer at the end of the work."""
        done = 0
        while done < size:
            whole = self._after is None
            taken = self.take(self._after, size - done)
            done += len(taken)
            self._after = taken[-1] if done == size else None
            if whole and not taken:
                break
        return Batch(done, done == size)
