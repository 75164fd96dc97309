"""How long a retry waits, and what follows each outcome."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.attempt import Ended, Release, Retry, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome, Refused
from notify_queue.domain.retry import Backoff, judge

BACKOFF = Backoff(base_ms=1_000, max_ms=60_000)
# The largest number below 1: the top of what a generator draws.
ALMOST_ONE = 1 - 2**-53


@pytest.mark.parametrize(
    ("attempt", "ceiling"),
    [(1, 1_000), (2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (8, 60_000), (10**9, 60_000)],
)
def test_the_ceiling_doubles_with_each_attempt_up_to_the_cap(attempt: int, ceiling: int) -> None:
    assert BACKOFF.delay_ms(attempt, 0) == ceiling // 2
    assert BACKOFF.delay_ms(attempt, 0.5) == ceiling * 3 // 4
    assert BACKOFF.delay_ms(attempt, ALMOST_ONE) == ceiling


def test_equal_base_and_cap_make_every_attempt_the_same() -> None:
    steady = Backoff(base_ms=500, max_ms=500)
    assert {steady.delay_ms(attempt, 0) for attempt in (1, 2, 50)} == {250}


@given(
    base=st.integers(1, 10**6),
    factor=st.integers(1, 10**4),
    attempt=st.integers(1, 10**12),
    draw=st.floats(0, 1, exclude_max=True),
)
def test_a_delay_lies_between_half_of_its_ceiling_and_all_of_it(
    base: int, factor: int, attempt: int, draw: float
) -> None:
    cap = base * factor
    ceiling = cap if attempt > 64 else min(base * 2 ** (attempt - 1), cap)
    delay = Backoff(base, cap).delay_ms(attempt, draw)
    assert isinstance(delay, int)
    # Half a millisecond is the rounding.
    assert ceiling / 2 - 0.5 <= delay <= ceiling


@given(attempt=st.integers(1, 100), draws=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 2))
def test_a_larger_draw_never_waits_less(attempt: int, draws: tuple[float, float]) -> None:
    low, high = sorted(draws)
    assert BACKOFF.delay_ms(attempt, low) <= BACKOFF.delay_ms(attempt, high)


DELIVERED = Delivered("message-1")
DUPLICATE = Delivered("message-1", duplicate=True)
REFUSED = Refused("no such mailbox")
FAILED = Failed("try later")
NOT_SENT = NotSent()


@pytest.mark.parametrize(
    ("outcome", "attempt", "max_attempts", "verdict"),
    [
        (DELIVERED, 1, 6, Ended(Status.SENT)),
        (DELIVERED, 6, 6, Ended(Status.SENT)),
        (DELIVERED, 7, 6, Ended(Status.SENT)),
        (DUPLICATE, 2, 6, Ended(Status.SENT)),
        (REFUSED, 1, 6, Ended(Status.FAILED, "no such mailbox")),
        (REFUSED, 6, 6, Ended(Status.FAILED, "no such mailbox")),
        (FAILED, 1, 6, Retry(500, "try later")),
        (FAILED, 2, 6, Retry(1_000, "try later")),
        (FAILED, 5, 6, Retry(8_000, "try later")),
        (FAILED, 6, 6, Ended(Status.DEAD_LETTERED, "try later")),
        (FAILED, 7, 6, Ended(Status.DEAD_LETTERED, "try later")),
        (FAILED, 1, 1, Ended(Status.DEAD_LETTERED, "try later")),
        (NOT_SENT, 1, 6, Release()),
        (NOT_SENT, 6, 6, Release()),
    ],
)
def test_each_outcome_at_each_attempt_has_one_verdict(
    outcome: Outcome, attempt: int, max_attempts: int, verdict: Verdict
) -> None:
    assert judge(outcome, attempt, max_attempts, BACKOFF, random=0) == verdict


def test_the_draw_reaches_the_delay() -> None:
    assert judge(FAILED, 1, 6, BACKOFF, random=0.5) == Retry(750, "try later")
