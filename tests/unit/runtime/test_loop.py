"""A loop makes one pass after another, and nothing but being told to stop ends it."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event
from gevent.queue import Empty, Queue

from notify_queue.runtime.loop import Loop

LONG_S = 3_600.0
# Enough for a pass to happen if it were going to.
SHORT_S = 0.05


class Duty:
    """Counts its passes; each returns or raises what the test has put there."""

    def __init__(self) -> None:
        self.passes: Queue[int] = Queue()
        self.made = 0
        self.answer: float | Exception | None = None
        self.during: Callable[[], object] = lambda: None

    def run_once(self) -> float | None:
        """Make a pass."""
        self.made += 1
        self.passes.put(self.made)
        self.during()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def next_pass(self) -> int:
        """Wait for the next pass and return its number."""
        return self.passes.get(timeout=5)

    def rests(self) -> bool:
        """Whether no pass follows for a while."""
        try:
            self.passes.get(timeout=SHORT_S)
        except Empty:
            return True
        return False


class Running:
    """A duty in its loop."""

    def __init__(self, longest_s: float = LONG_S) -> None:
        self.duty = Duty()
        self.wake = Event()
        self.loop = Loop(
            self.duty.run_once,
            longest_s=longest_s,
            failed="worker.poll_failed",
            worker_id="worker-1",
            wake=self.wake,
        )


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start loops that are stopped at the end of the test."""
    started: list[Running] = []

    def one(answer: float | Exception | None = None, longest_s: float = LONG_S) -> Running:
        running = Running(longest_s)
        running.duty.answer = answer
        running.loop.start()
        started.append(running)
        return running

    yield one
    for each in started:
        each.duty.during = lambda: None
        each.loop.stop()
        each.loop.join(5)


def test_the_first_pass_follows_the_start_at_once(start: Start) -> None:
    assert start().duty.next_pass() == 1


def test_nothing_runs_before_the_start() -> None:
    assert Running().duty.rests()


def test_it_runs_again_when_the_pass_said_to(start: Start) -> None:
    duty = start(answer=0.001).duty
    assert [duty.next_pass() for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("answer", [None, LONG_S])
def test_it_sleeps_no_longer_than_its_longest(start: Start, answer: float | None) -> None:
    duty = start(answer, longest_s=0.01).duty
    assert [duty.next_pass() for _ in range(3)] == [1, 2, 3]


def test_it_does_not_run_again_before_it_is_time(start: Start) -> None:
    duty = start(answer=LONG_S).duty
    duty.next_pass()
    assert duty.rests()


def test_a_wake_up_starts_a_pass_early(start: Start) -> None:
    running = start()
    running.duty.next_pass()
    gevent.idle()
    running.wake.set()
    assert running.duty.next_pass() == 2
    assert running.duty.rests()


def test_a_wake_up_during_a_pass_causes_exactly_one_more(start: Start) -> None:
    running = start()
    running.duty.next_pass()
    inside, go_on = Event(), Event()

    def wait_inside() -> None:
        running.duty.during = lambda: None
        inside.set()
        go_on.wait()

    running.duty.during = wait_inside
    gevent.idle()
    running.wake.set()
    assert inside.wait(5)
    for _ in range(3):
        running.wake.set()
    go_on.set()
    assert [running.duty.next_pass() for _ in range(2)] == [2, 3]
    assert running.duty.rests()


def test_it_outlives_whatever_a_pass_raises_and_says_so(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    duty = start(answer=ConnectionError("the database is away"), longest_s=0.02).duty
    assert [duty.next_pass() for _ in range(3)] == [1, 2, 3]
    record: Any = caplog.records[0].msg
    assert caplog.records[0].levelname == "ERROR"
    assert record["event"] == "worker.poll_failed"
    assert record["workerId"] == "worker-1"
    assert record["error"]["name"] == "ConnectionError"


def test_it_goes_back_to_its_pace_after_a_failure(start: Start) -> None:
    running = start(answer=ConnectionError("the database is away"), longest_s=0.02)
    running.duty.next_pass()
    running.duty.answer = 0.001
    assert [running.duty.next_pass() for _ in range(3)] == [2, 3, 4]


def test_no_wake_up_shortens_the_pause_after_a_failure(start: Start) -> None:
    running = start(answer=ConnectionError("the database is away"))
    running.duty.next_pass()
    gevent.idle()
    running.wake.set()
    assert running.duty.rests()


def test_a_stop_ends_a_sleep(start: Start) -> None:
    running = start()
    running.duty.next_pass()
    running.loop.stop()
    with gevent.Timeout(5):
        running.loop.join()
    assert running.duty.made == 1


def test_a_stop_ends_the_pause_after_a_failure(start: Start) -> None:
    running = start(answer=ConnectionError("the database is away"))
    running.duty.next_pass()
    gevent.idle()
    running.loop.stop()
    with gevent.Timeout(5):
        running.loop.join()
    assert running.duty.made == 1


def test_a_stop_lets_the_pass_in_progress_end(start: Start) -> None:
    running = start()
    running.duty.next_pass()
    inside, go_on, ended = Event(), Event(), Event()

    def wait_inside() -> None:
        inside.set()
        go_on.wait()
        ended.set()

    running.duty.during = wait_inside
    running.wake.set()
    assert inside.wait(5)
    running.loop.stop()
    running.loop.join(0.01)
    assert not ended.is_set()
    go_on.set()
    with gevent.Timeout(5):
        running.loop.join()
    assert ended.is_set()
    assert running.duty.made == 2


def test_a_loop_that_never_started_can_be_stopped_and_joined() -> None:
    running = Running()
    running.loop.stop()
    running.loop.join()
    assert running.duty.made == 0
