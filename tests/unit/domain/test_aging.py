"""How many places of a batch go to work that has waited too long, and whose turn it is."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.aging import Aging, aging_for, in_turn
from notify_queue.domain.job import Priority
from notify_queue.domain.rate_limit import Gate

AFTER = timedelta(seconds=300)


@pytest.mark.parametrize(
    ("limit", "share", "places"),
    [
        (100, 0.1, 10),
        (99, 0.1, 9),
        (20, 0.1, 2),
        (19, 0.1, 1),
        (2, 0.1, 1),
        (1, 0.1, 0),
        (1, 1.0, 0),
        (100, 0.0, 0),
        (100, 0.001, 1),
        (100, 1.0, 100),
    ],
)
def test_a_share_is_at_least_one_place_once_a_batch_has_two(
    limit: int, share: float, places: int
) -> None:
    assert aging_for(limit, share, AFTER).places == places


def test_the_waiting_time_is_passed_on() -> None:
    assert aging_for(10, 0.1, AFTER).after == AFTER


# At now, what is due by now has aged if a higher priority kept it waiting.
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@st.composite
def lines(draw: st.DrawFn) -> list[Gate]:
    """Whoever waits, many of them alike, in any order."""
    several = st.lists(st.tuples(st.sampled_from(Priority), st.integers(-4, 4)), max_size=12)
    return [
        Gate(
            recipient=f"{place}@example.com",
            priority=priority,
            due_at=NOW + timedelta(seconds=due),
            aged=priority < Priority.HIGH and due <= 0,
        )
        for place, (priority, due) in enumerate(draw(several))
    ]


@given(lines(), st.integers(0, 5))
def test_aged_work_takes_the_places_kept_for_it_and_the_rest_goes_by_priority_and_due_time(
    line: list[Gate], places: int
) -> None:
    left = list(line)
    turns: list[Gate] = []
    # Whoever of several alike came first in the line goes first.
    while len(turns) < places and (aged := [each for each in left if each.aged]):
        turns.append(min(aged, key=lambda each: each.due_at))
        left.remove(turns[-1])
    while left:
        best = max(each.priority for each in left)
        turns.append(
            min((each for each in left if each.priority == best), key=lambda each: each.due_at)
        )
        left.remove(turns[-1])
    assert in_turn(line, Aging(places, AFTER)) == turns


def test_places_that_no_aged_work_takes_go_by_priority() -> None:
    urgent, fresh, aged = (
        Gate(name, priority, NOW, aged=name == "aged")
        for name, priority in (
            ("urgent", Priority.HIGH),
            ("fresh", Priority.LOW),
            ("aged", Priority.NORMAL),
        )
    )
    assert in_turn([fresh, urgent, aged], Aging(3, AFTER)) == [aged, urgent, fresh]
