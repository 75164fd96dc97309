"""Much work in small steps: how large each is, and how long to wait before the next.

Each step is a short transaction of its own. A run that ends between two of them has done some of
the work whole and left the rest untouched.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

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


def in_batches(
    batch: Callable[[int], int], pace: Pace, limit: int | None, wait: Callable[[float], bool]
) -> int:
    """Call ``batch(size)`` until nothing is left, and return the jobs done in all.

    ``batch`` returns how many jobs it did; fewer than it was asked for is the end. ``limit`` is for
    the whole run, None for no bound. ``wait(s)`` pauses and says whether the run shall stop.
    """
    done = 0
    while True:
        asked = pace.size if limit is None else min(pace.size, limit - done)
        got = batch(asked)
        done += got
        if pace.once or got < asked or done == limit or wait(pace.pause_s):
            return done
