"""Ids are UUIDv7 and grow strictly within a process."""

import builtins
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from uuid import RFC_4122, UUID

import pytest

from notify_queue.persistence import identity
from notify_queue.persistence.identity import new_id

# A moment to set the clock to, far ahead of any that a run has seen: ids only ever grow.
FAR_AHEAD_NS = 4_000_000_000 * 10**9


class StoppedClock:
    """Stands in for the module ``time``."""

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def time_ns(self) -> int:
        """Read it."""
        return self.nanoseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """A clock that only the test moves, and a sequence that begins with it."""
    clock = StoppedClock(FAR_AHEAD_NS)
    monkeypatch.setattr(identity, "time", clock)
    monkeypatch.setattr(identity, "_last_stamp", 0)
    return clock


def milliseconds(id_: UUID) -> int:
    return id_.int >> 80


def test_an_id_has_the_version_and_the_variant_of_a_uuid_7() -> None:
    for _ in range(1_000):
        id_ = new_id()
        assert id_.version == 7
        assert id_.variant == RFC_4122


def test_an_id_begins_with_the_time_in_milliseconds() -> None:
    before = time.time_ns() // 10**6
    id_ = new_id()
    assert before <= milliseconds(id_) <= time.time_ns() // 10**6 + 1


def test_ids_grow_strictly_as_numbers_and_as_text() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert ids == sorted(set(ids))
    texts = [str(each) for each in ids]
    assert texts == sorted(texts)


def test_ids_of_several_threads_are_distinct_and_grow_within_each() -> None:
    threads = 8
    together = Barrier(threads)

    def make() -> list[UUID]:
        together.wait(10)
        return [new_id() for _ in range(2_000)]

    with ThreadPoolExecutor(threads) as pool:
        batches = [each.result() for each in [pool.submit(make) for _ in range(threads)]]
    for batch in batches:
        assert batch == sorted(set(batch))
    heads = {id_.int >> 64 for batch in batches for id_ in batch}
    assert len(heads) == threads * 2_000


def test_two_threads_never_work_on_one_stamp(
    clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is at it waits a moment for a second one, who must not be let in."""
    at_it = Barrier(2)

    def meet(*stamps: int) -> int:
        with suppress(BrokenBarrierError):
            at_it.wait(0.1)
        return builtins.max(stamps)

    monkeypatch.setattr(identity, "max", meet, raising=False)
    with ThreadPoolExecutor(2) as pool:
        one, other = (each.result() for each in [pool.submit(new_id) for _ in range(2)])
    assert one.int >> 64 != other.int >> 64
    assert milliseconds(one) == clock.nanoseconds // 10**6


def test_ids_grow_while_the_clock_stands_still(clock: StoppedClock) -> None:
    ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(set(ids))
    # 4,096 to a millisecond, then the next one is borrowed.
    assert milliseconds(ids[4_095]) == clock.nanoseconds // 10**6
    assert milliseconds(ids[4_096]) == clock.nanoseconds // 10**6 + 1


def test_ids_grow_when_the_clock_is_set_back(clock: StoppedClock) -> None:
    first = new_id()
    clock.nanoseconds -= 3_600 * 10**9
    assert new_id() > first


def test_the_fraction_of_the_millisecond_is_kept(clock: StoppedClock) -> None:
    clock.nanoseconds += 500_000
    assert new_id().int >> 64 & 0xFFF == 0x800


def test_the_last_half_is_random(clock: StoppedClock) -> None:
    mask = (1 << 62) - 1
    assert len({new_id().int & mask for _ in range(100)}) == 100
    assert clock.nanoseconds == FAR_AHEAD_NS
