"""Waiting on a condition, with a deadline. The one place in the suite that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LOOK_EVERY_S = 0.02


def until(condition: Callable[[], T], what: str, deadline_s: float = 20) -> T:
    """Return the condition's first true value.

    Raises:
        AssertionError: it stayed false; ``what`` says what was waited for.
    """
    end = time.monotonic() + deadline_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s} s in vain for: {what}")
        time.sleep(_LOOK_EVERY_S)
    return value
