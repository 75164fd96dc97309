"""Work in batches keeps to its limits, and its pace is a promise about every second."""

from fractions import Fraction
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.cli.batches import BATCH_SIZE, Pace, in_batches, pace


class Work:
    """``left`` jobs to do; notes what was asked for, and the pauses between."""

    def __init__(self, left: int, stop_after: int | None = None) -> None:
        self.left = left
        self.asked: list[int] = []
        self.pauses: list[float] = []
        self._stop_after = stop_after

    def batch(self, size: int) -> int:
        done = min(size, self.left)
        self.left -= done
        self.asked.append(size)
        return done

    def wait(self, pause_s: float) -> bool:
        self.pauses.append(pause_s)
        return len(self.pauses) == self._stop_after


def test_batches_follow_each_other_until_nothing_is_left() -> None:
    work = Work(25)
    assert in_batches(work.batch, Pace(10, 0.5), None, work.wait) == 25
    assert work.asked == [10, 10, 10]
    assert work.pauses == [0.5, 0.5]


def test_a_last_batch_that_was_full_is_followed_by_an_empty_one() -> None:
    work = Work(20)
    assert in_batches(work.batch, Pace(10, 0), None, work.wait) == 20
    assert work.asked == [10, 10, 10]


@pytest.mark.parametrize(("limit", "asked"), [(3, [3]), (10, [10]), (25, [10, 10, 5])])
def test_a_limit_is_for_the_whole_run(limit: int, asked: list[int]) -> None:
    work = Work(100)
    assert in_batches(work.batch, Pace(10, 0), limit, work.wait) == limit
    assert work.asked == asked


def test_once_is_one_batch_whatever_is_left() -> None:
    work = Work(100)
    assert in_batches(work.batch, Pace(10, 0, once=True), None, work.wait) == 10
    assert work.pauses == []


def test_a_run_that_shall_stop_does_not_begin_another_batch() -> None:
    work = Work(100, stop_after=2)
    assert in_batches(work.batch, Pace(10, 0), None, work.wait) == 20


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

    def batch(size: int) -> int:
        nonlocal clock
        clock += Fraction(next(durations))
        done.append((clock, round(size * next(parts))))
        return size

    in_batches(batch, pace(0, rate), None, wait)
    assert len(done) == 30
    assert all(_within_a_second_from(begin, done) <= rate for begin, _ in done)


def _within_a_second_from(begin: Fraction, done: list[tuple[Fraction, int]]) -> int:
    return sum(size for at, size in done if begin <= at < begin + 1)
