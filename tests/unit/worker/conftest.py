"""A queue in memory, a clock that only the test moves, and the log records of the worker."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from notify_queue.delivery import lease
from notify_queue.worker import claim, complete, pipeline
from tests.unit.worker.in_memory import InMemoryQueue

Said = Callable[[str], list[dict[str, Any]]]


class ManualClock:
    """Stands in for the module ``time`` where a step reads the monotonic clock."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        """Read it."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move it."""
        self.now += seconds


@pytest.fixture
def queue() -> InMemoryQueue:
    """An empty queue."""
    return InMemoryQueue()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of claims, leases, the pipeline and the completion buffer."""
    manual = ManualClock()
    for module in (claim, complete, lease, pipeline):
        monkeypatch.setattr(module, "time", manual)
    return manual


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    """What was logged of one event so far: level and fields."""
    caplog.set_level(logging.DEBUG)

    def of(event: str) -> list[dict[str, Any]]:
        own = [each for each in caplog.records if each.name == "notify_queue"]
        records: list[tuple[str, Any]] = [(each.levelname, each.msg) for each in own]
        return [{"level": level, **said} for level, said in records if said["event"] == event]

    return of
