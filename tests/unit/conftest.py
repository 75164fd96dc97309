"""What all unit tests share."""

import gevent
import pytest


@pytest.fixture(autouse=True)
def _loop_knows_the_time() -> None:
    """Let the event loop run: it counts deadlines from when it did so last.

    That may be minutes ago, in another test, and then they are over at once.
    """
    gevent.sleep(0)
