"""Work in batches keeps to its limits, and its pace is a promise about every second."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import cycle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.cli.batches import BATCH_SIZE, Batch, Pace, Sweeps, in_batches, pace
from notify_queue.domain.page import Place


class Work:
    """``left`` jobs to do; notes what was asked for, and the pauses between."""

    def __init__(self, left: int, stop_after: int | None = None) -> None:
        self.left = left
        self.asked: list[int] = []
        self.pauses: list[float] = []
        self.done = 0
        self._stop_after = stop_after

    def batch(self, size: int) -> Batch:
        done = min(size, self.left)
        self.left -= done
        self.done += done
        self.asked.append(size)
        return Batch(done, done == size)

    def wait(self, pause_s: float) -> bool:
        self.pauses.append(pause_s)
        return len(self.pauses) == self._stop_after


def test_batches_follow_each_other_until_nothing_is_left() -> None:
    work = Work(25)
    in_batches(work.batch, Pace(10, 0.5), None, work.wait)
    assert work.done == 25
    assert work.asked == [10, 10, 10]
    assert work.pauses == [0.5, 0.5]


def test_a_last_batch_that_was_full_is_followed_by_an_empty_one() -> None:
    work = Work(20)
    in_batches(work.batch, Pace(10, 0), None, work.wait)
    assert work.done == 20
    assert work.asked == [10, 10, 10]


@pytest.mark.parametrize(("limit", "asked"), [(3, [3]), (10, [10]), (25, [10, 10, 5])])
def test_a_limit_is_for_the_whole_run(limit: int, asked: list[int]) -> None:
    work = Work(100)
    in_batches(work.batch, Pace(10, 0), limit, work.wait)
    assert work.done == limit
    assert work.asked == asked


def test_once_is_one_batch_whatever_is_left() -> None:
    work = Work(100)
    in_batches(work.batch, Pace(10, 0, once=True), None, work.wait)
    assert work.done == 10
    assert work.pauses == []


def test_a_run_that_shall_stop_does_not_begin_another_batch() -> None:
    work = Work(100, stop_after=2)
    in_batches(work.batch, Pace(10, 0), None, work.wait)
    assert work.done == 20


def test_without_a_rate_only_the_pause_counts() -> None:
    assert pace(0.25) == Pace(BATCH_SIZE, 0.25)


@pytest.mark.parametrize(
    ("pause_s", "rate", "chosen"),
    [
        (0, 1, Pace(1, 1)),
        (0, 40, Pace(40, 1)),
        (3, 40, Pace(40, 3)),
        (0, 1200, Pace(400, 1 / 3)),
    ],
)
def test_a_rate_bounds_the_batch_and_the_pause(pause_s: float, rate: int, chosen: Pace) -> None:
    assert pace(pause_s, rate) == chosen


@given(
    rate=st.integers(1, 5_000),
    lasting=st.lists(st.sampled_from([0, 0.01, 0.4, 3]), min_size=1, max_size=5),
    shares=st.lists(st.sampled_from([1, 0.5, 0]), min_size=1, max_size=4),
)
def test_no_second_sees_more_than_the_rate(
    rate: int, lasting: list[float], shares: list[float]
) -> None:
    clock = Fraction(0)
    done: list[tuple[Fraction, int]] = []
    durations, parts = cycle(lasting), cycle(shares)

    def wait(pause_s: float) -> bool:
        nonlocal clock
        clock += Fraction(pause_s).limit_denominator(1000)
        return len(done) == 30

    def batch(size: int) -> Batch:
        nonlocal clock
        clock += Fraction(next(durations))
        done.append((clock, round(size * next(parts))))
        return Batch(size, more=True)

    in_batches(batch, pace(0, rate), None, wait)
    assert len(done) == 30
    assert all(_within_a_second_from(begin, done) <= rate for begin, _ in done)


def _within_a_second_from(begin: Fraction, done: list[tuple[Fraction, int]]) -> int:
    return sum(size for at, size in done if begin <= at < begin + 1)


EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = [Place(EARLIEST + timedelta(seconds=second), UUID(int=0)) for second in range(10)]


class Order:
    """Ten places of which some are held; ``lets_go`` says how many may be taken before that."""

    def __init__(self, held: list[int], lets_go: int) -> None:
        self.taken: list[int] = []
        self._held = held
        self._lets_go = lets_go

    def take(self, after: Place | None, size: int) -> list[Place]:
        begin = 0 if after is None else ORDER.index(after) + 1
        held = self._held if len(self.taken) < self._lets_go else []
        free = [n for n in range(begin, 10) if n not in held and n not in self.taken][:size]
        self.taken += free
        return [ORDER[number] for number in free]


def test_what_a_sweep_passed_over_fills_the_batch_that_comes_to_the_end() -> None:
    order = Order(held=[0, 5], lets_go=8)
    sweeps = Sweeps(order.take)
    assert [sweeps.batch(4) for _ in range(3)] == [(4, True), (4, True), (2, False)]
    assert order.taken == [1, 2, 3, 4, 6, 7, 8, 9, 0, 5]


def test_a_sweep_that_found_something_is_followed_by_another() -> None:
    order = Order(held=[0], lets_go=9)
    assert Sweeps(order.take).batch(100).done == 10
    assert order.taken[-1] == 0


def test_a_whole_sweep_that_finds_nothing_is_the_end() -> None:
    order = Order(held=[0, 1], lets_go=100)
    sweeps = Sweeps(order.take)
    assert [sweeps.batch(4) for _ in range(3)] == [(4, True), (4, True), (0, False)]
