"""How many webhooks may be on their way, by how the receiver bears them."""

from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.throttle import Throttle


def after(throttle: Throttle, *troubles: bool) -> int:
    for trouble in troubles:
        throttle = throttle.after(trouble=trouble)
    return throttle.now


def test_trouble_halves_down_to_one() -> None:
    assert [after(Throttle(50, 50), *[True] * n) for n in range(8)] == [50, 25, 12, 6, 3, 1, 1, 1]


def test_every_answer_allows_one_more_up_to_the_most() -> None:
    assert after(Throttle(50, 1), *[False] * 10) == 11
    assert after(Throttle(50, 49), *[False] * 3) == 50


@given(st.integers(1, 1000), st.lists(st.booleans()))
def test_there_is_always_one_and_never_too_many(most: int, troubles: list[bool]) -> None:
    assert 1 <= after(Throttle(most, most), *troubles) <= most
