"""What Retry-After may say, and how much of it is believed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.retry_after import LONGEST_S, retry_after_s

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("3600", 3600),
        ("3601", 3600),
        ("9" * 5000, 3600),
        ("0" * 5000, 0),
        ("0000000000120", 120),
        ("-1", 0),
        ("1.5", 0),
        ("1e3", 0),
        ("٣", 0),
        ("soon", 0),
        # The three forms of RFC 9110, section 5.6.7.
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90),
        ("Sunday, 01-Mar-26 12:01:30 GMT", 90),
        ("Sun Mar  1 12:01:30 2026", 90),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2099 12:00:00 GMT", 3600),
        ("Sun, 99 Mar 2026 12:00:00 GMT", 0),
    ],
)
def test_seconds_and_dates_are_read_and_anything_else_asks_for_nothing(
    value: str | None, seconds: int
) -> None:
    assert retry_after_s(value, None, NOW) == seconds


def test_a_date_is_compared_with_the_receivers_own_clock() -> None:
    value, theirs = "Sun, 01 Mar 2026 12:11:30 GMT", "Sun, 01 Mar 2026 12:10:00 GMT"
    assert retry_after_s(value, theirs, NOW) == 90
    assert retry_after_s(value, "nonsense", NOW) == 690


@given(st.text(), st.text())
def test_no_text_is_an_error(value: str, date: str) -> None:
    assert 0 <= retry_after_s(value, date, NOW) <= LONGEST_S
