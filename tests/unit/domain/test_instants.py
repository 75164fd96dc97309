"""Which spellings of an instant are accepted, and that each instant is one value."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.schedule import (
    HORIZON_DAYS,
    MAX_DELAY_SECONDS,
    MissingOffsetError,
    NotADateTimeError,
    parse_instant,
    within_horizon,
)

EIGHT = datetime(2026, 12, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01T08:00Z",
        "2026-12-01T08:00:00Z",
        "2026-12-01T08:00:00+00:00",
        "2026-12-01T08:00:00-00:00",
        "2026-12-01T08:00:00.0Z",
        "2026-12-01T08:00:00.000Z",
        "2026-12-01T08:00:00.000999999Z",
        "2026-12-01T09:30:00+01:30",
        "2026-11-30T08:01:00-23:59",
        "2026-12-02T07:59:00+23:59",
    ],
)
def test_every_accepted_spelling_of_one_instant_is_the_same_value_in_utc(text: str) -> None:
    parsed = parse_instant(text)
    assert parsed == EIGHT
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    ("fraction", "milliseconds"),
    [("1", 100), ("12", 120), ("123", 123), ("1239", 123), ("999999999", 999), ("0005", 0)],
)
def test_digits_past_the_millisecond_are_cut_and_never_rounded(
    fraction: str, milliseconds: int
) -> None:
    expected = EIGHT + timedelta(milliseconds=milliseconds)
    assert parse_instant(f"2026-12-01T08:00:00.{fraction}Z") == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01",
        "2026-12-01T08:00",
        "2026-12-01T08:00:00",
        "2026-03-29T01:30:00",
        "2026-12-01T08:00:00.123456",
        "2026-12-01T08:00:00z",
        "2026-12-01T08:00:00+0100",
        "2026-12-01T08:00:00+01",
        "2026-12-01T08:00:00-08",
    ],
)
def test_a_real_date_without_an_offset_as_we_spell_it_misses_its_offset(text: str) -> None:
    with pytest.raises(MissingOffsetError):
        parse_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "1764576000",
        "20261201T080000Z",
        "2026-W49-2T08:00:00Z",
        "2026-335T08:00:00Z",
        "2026-12-01 08:00:00Z",
        "2026-12-01t08:00:00Z",
        "2026-12-01T08Z",
        "2026-12-01T08:00:00,5Z",
        "2026-12-01T08:00:00.Z",
        "2026-12-01T08:00.5Z",
        "2026-12-01T08:00:00 Z",
        " 2026-12-01T08:00:00Z",
        "2026-12-01T08:00:00Z\n",
        "2026-12-01T08:00:00ZZ",
        "2026-12-01T08:00:00\N{MINUS SIGN}01:00",
        "\N{ARABIC-INDIC DIGIT TWO}026-12-01T08:00:00Z",
        "2026-12-01T08:00:00.\N{ARABIC-INDIC DIGIT TWO}Z",
        "+002026-12-01T08:00:00Z",
        "2026-12-01T08:00:00+01:00[Europe/London]",
    ],
)
def test_any_other_form_is_no_date_time(text: str) -> None:
    with pytest.raises(NotADateTimeError):
        parse_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29T08:00:00Z",
        "2026-02-30",
        "2026-04-31T08:00:00Z",
        "2026-13-01T08:00:00Z",
        "2026-00-10T08:00:00Z",
        "2026-12-00T08:00:00Z",
        "0000-12-01T08:00:00Z",
        "2026-12-31T23:59:60Z",
        "2026-12-31T15:59:60-08:00",
        "2026-12-01T10:15:60Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T24:00Z",
        "2026-12-01T25:00:00",
        "2026-12-01T08:60:00Z",
        "2026-12-01T08:00:00+24:00",
        "2026-12-01T08:00:00+01:60",
    ],
)
def test_what_the_calendar_or_the_clock_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(NotADateTimeError):
        parse_instant(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])
def test_an_instant_before_the_first_or_after_the_last_year_is_refused(text: str) -> None:
    with pytest.raises(NotADateTimeError):
        parse_instant(text)


def test_a_leap_day_is_a_day() -> None:
    assert parse_instant("2028-02-29T00:00:00Z") == datetime(2028, 2, 29, tzinfo=UTC)


def test_the_two_readings_of_an_hour_that_london_has_twice_are_an_hour_apart() -> None:
    summer = parse_instant("2026-10-25T01:30:00+01:00")
    winter = parse_instant("2026-10-25T01:30:00+00:00")
    assert winter - summer == timedelta(hours=1)


@given(
    moment=st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)),  # noqa: DTZ001 - hypothesis wants bounds without a zone
    minutes=st.integers(-(24 * 60 - 1), 24 * 60 - 1),
)
def test_one_instant_written_in_any_offset_reads_back_as_itself(
    moment: datetime, minutes: int
) -> None:
    instant = moment.replace(tzinfo=UTC)
    cut = instant - timedelta(microseconds=instant.microsecond % 1000)
    text = instant.astimezone(timezone(timedelta(minutes=minutes))).isoformat()
    assert parse_instant(text) == cut


@given(st.text(alphabet="0123456789-+:.TtZz ", max_size=32))
def test_no_text_makes_it_fail_in_another_way(text: str) -> None:
    try:
        parsed = parse_instant(text)
    except (NotADateTimeError, MissingOffsetError):
        return
    assert parsed.tzinfo is UTC


def test_the_horizon_is_365_days_and_its_last_instant_belongs_to_it() -> None:
    edge = EIGHT + timedelta(days=HORIZON_DAYS)
    assert timedelta(seconds=MAX_DELAY_SECONDS) == timedelta(days=365)
    assert within_horizon(edge, EIGHT)
    assert not within_horizon(edge + timedelta(milliseconds=1), EIGHT)


def test_the_past_is_always_within_the_horizon() -> None:
    assert within_horizon(datetime(1, 1, 1, tzinfo=UTC), EIGHT)
