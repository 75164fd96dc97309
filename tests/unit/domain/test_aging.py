"""How many places of a batch go to work that has waited too long."""

from datetime import timedelta

import pytest

from notify_queue.domain.aging import aging_for

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
