"""Calls that arrive together share a round to the store."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import gevent
import pytest
from gevent.event import Event

from notify_queue.delivery.coalesce import MOST_AT_ONCE, Coalesced


@dataclass
class Store:
    """Doubles numbers, a round at a time; a round waits while ``open`` is not set."""

    rounds: list[list[int]] = field(default_factory=list)
    open: Event = field(default_factory=Event)
    asked: Event = field(default_factory=Event)
    errors: list[Exception] = field(default_factory=list)

    def ask(self, questions: Sequence[int]) -> list[int]:
        self.rounds.append(list(questions))
        self.asked.set()
        assert self.open.wait(5)
        if self.errors:
            raise self.errors.pop()
        return [2 * question for question in questions]


@pytest.fixture
def store() -> Store:
    return Store()


def answers(calls: Sequence["gevent.Greenlet[[int], int]"]) -> list[int]:
    return [call.get(timeout=5) for call in calls]


def test_a_single_call_gets_its_answer(store: Store) -> None:
    store.open.set()
    assert Coalesced(store.ask)(21) == 42


def test_calls_of_one_moment_are_one_round_and_each_gets_its_own_answer(store: Store) -> None:
    store.open.set()
    double = Coalesced(store.ask)
    assert answers([gevent.spawn(double, n) for n in range(5)]) == [0, 2, 4, 6, 8]
    assert store.rounds == [[0, 1, 2, 3, 4]]


def test_what_its_caller_has_given_up_before_its_round_is_never_asked(store: Store) -> None:
    """A provider that takes a notification up after its time was up has nobody waiting for it."""
    double = Coalesced(store.ask)
    first = gevent.spawn(double, 1)
    assert store.asked.wait(5)
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.001):
        double(2)
    late = gevent.spawn(double, 3)
    store.open.set()
    assert answers([first, late]) == [2, 6]
    assert store.rounds == [[1], [3]]


def test_calls_that_arrive_during_a_round_share_the_next(store: Store) -> None:
    double = Coalesced(store.ask)
    first = gevent.spawn(double, 1)
    assert store.asked.wait(5)
    late = [gevent.spawn(double, n) for n in (2, 3)]
    gevent.idle()
    assert store.rounds == [[1]]
    store.open.set()
    assert answers([first, *late]) == [2, 4, 6]
    assert store.rounds == [[1], [2, 3]]


def test_a_round_has_a_largest_size(store: Store) -> None:
    store.open.set()
    double = Coalesced(store.ask)
    count = MOST_AT_ONCE + 2
    assert answers([gevent.spawn(double, n) for n in range(count)]) == [2 * n for n in range(count)]
    assert [len(each) for each in store.rounds] == [MOST_AT_ONCE, 2]


def test_a_failed_round_raises_in_every_one_of_its_callers_and_in_no_other(store: Store) -> None:
    error = ConnectionError("the store is away")
    store.errors.append(error)
    double = Coalesced(store.ask)
    first = [gevent.spawn(double, n) for n in (1, 2)]
    assert store.asked.wait(5)
    late = gevent.spawn(double, 3)
    gevent.idle()
    store.open.set()
    gevent.joinall([*first, late], timeout=5)
    assert [call.exception for call in first] == [error, error]
    assert late.value == 6


def test_after_a_failed_round_the_next_call_is_answered(store: Store) -> None:
    store.open.set()
    store.errors.append(ConnectionError("the store is away"))
    double = Coalesced(store.ask)
    with pytest.raises(ConnectionError):
        double(1)
    assert double(2) == 4


def test_a_caller_that_is_killed_does_not_take_its_round_along(store: Store) -> None:
    double = Coalesced(store.ask)
    killed, other = gevent.spawn(double, 1), gevent.spawn(double, 2)
    assert store.asked.wait(5)
    killed.kill(timeout=5)
    store.open.set()
    assert other.get(timeout=5) == 4
    assert isinstance(killed.value, gevent.GreenletExit)


def test_a_caller_that_gives_up_leaves_its_question_and_the_round_goes_on(store: Store) -> None:
    double = Coalesced(store.ask)
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.01):
        double(1)
    late = gevent.spawn(double, 2)
    gevent.idle()
    store.open.set()
    assert late.get(timeout=5) == 4
    assert store.rounds == [[1], [2]]
