"""A lease ends by a clock that only moves forward."""

import pytest

from notify_queue.delivery import lease as module
from notify_queue.delivery.lease import Lease
from tests.unit.worker.conftest import ManualClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock that leases read."""
    clock = ManualClock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_what_is_left_shrinks_as_time_passes(clock: ManualClock) -> None:
    lease = Lease(ends=clock.now + 10)
    assert lease.left_ms == 10_000
    clock.advance(4)
    assert lease.left_ms == 6_000
    clock.advance(7)
    assert lease.left_ms == -1_000


def test_a_lease_is_over_from_the_very_moment_it_ends(clock: ManualClock) -> None:
    lease = Lease(ends=clock.now + 10)
    clock.advance(9.5)
    assert not lease.over
    clock.advance(0.5)
    assert lease.over
