"""Whatever a provider says can be stored, shown and logged (pitfall C4)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.error_text import MAX_LENGTH, clean_error

RECIPIENT = "ada@example.com"


def test_plain_words_stay_as_they_are() -> None:
    text = "550 mailbox unavailable: \N{LATIN SMALL LETTER E WITH ACUTE} \N{PARTY POPPER}"
    assert clean_error(text, RECIPIENT) == text


def test_a_megabyte_with_nuls_and_line_breaks_becomes_one_short_line() -> None:
    text = "line one\r\nline two\x00\n" * 50_000
    cleaned = clean_error(text, RECIPIENT)
    assert cleaned.startswith("line one line two line one")
    assert len(cleaned) <= MAX_LENGTH


@pytest.mark.parametrize(
    "character",
    ["\x00", "\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\ud800", chr(0xDFFF), "\u2028", "\u2029"],
    ids=ascii,
)
def test_a_character_that_breaks_a_column_or_a_line_becomes_a_space(character: str) -> None:
    assert clean_error(f"a{character}b", RECIPIENT) == "a b"
    assert clean_error(f"a{character * 3}b", RECIPIENT) == "a b"


def test_the_recipient_is_taken_out_wherever_it_stands() -> None:
    said = f"<{RECIPIENT}>: refused, {RECIPIENT} does not exist"
    expected = "<[recipient]>: refused, [recipient] does not exist"
    assert clean_error(said, RECIPIENT) == expected


def test_the_recipient_does_not_survive_at_the_place_where_the_text_is_cut() -> None:
    for shift in range(MAX_LENGTH - 40, MAX_LENGTH + 1):
        assert "ada" not in clean_error("x" * shift + RECIPIENT, RECIPIENT)


def test_the_recipient_does_not_survive_in_part_where_a_long_text_is_cut_short() -> None:
    """Control characters shrink to one space, so what stood far back can come to the front."""
    for shift in range(4 * MAX_LENGTH - 40, 4 * MAX_LENGTH + 1):
        assert "ada" not in clean_error("\x00" * shift + RECIPIENT, RECIPIENT)


@pytest.mark.parametrize("text", ["", " ", "\x00", "\n\n"])
def test_nothing_worth_saying_becomes_an_empty_text(text: str) -> None:
    assert clean_error(text, RECIPIENT) == ""


def test_an_unknown_recipient_takes_nothing_out() -> None:
    assert clean_error("as it is", "") == "as it is"


@given(text=st.text(st.characters(exclude_categories=()), max_size=3_000), recipient=st.text())
def test_any_text_at_all_comes_out_fit_for_a_text_column_and_a_line(
    text: str, recipient: str
) -> None:
    cleaned = clean_error(text, recipient)
    assert len(cleaned) <= MAX_LENGTH
    assert len(cleaned.encode().splitlines()) <= 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", cleaned)
