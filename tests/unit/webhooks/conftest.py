"""An outbox in memory, a clock that only the test moves, and the log records of the webhooks."""

import pytest

from notify_queue.delivery import lease
from notify_queue.webhooks import dispatch, record, take
from tests.unit.webhooks.in_memory import InMemoryOutbox
from tests.unit.worker.conftest import (
    ManualClock,
    said,  # noqa: F401 - a fixture
)


@pytest.fixture
def outbox() -> InMemoryOutbox:
    """An empty outbox."""
    return InMemoryOutbox()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of leases."""
    manual = ManualClock()
    for module in (dispatch, lease, take):
        monkeypatch.setattr(module, "time", manual)
    return manual


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded once more is so at once."""
    monkeypatch.setattr(record, "_AGAIN_S", 0.001)
