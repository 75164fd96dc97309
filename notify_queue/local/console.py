"""What the runner tells the person who started it."""

import contextlib
import sys


def say(text: str) -> None:
    """Print one or more lines at once: the children write to the same terminal."""
    # A closed terminal must not keep the runner from stopping what it started.
    with contextlib.suppress(OSError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
