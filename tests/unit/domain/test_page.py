"""Cursors: exact to the microsecond, and of use only as they were given out."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notify_queue.domain.errors import InvalidCursorError
from notify_queue.domain.page import Place, decode_cursor, encode_cursor

KEY = bytes(range(32))
PLACE = Place(datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC), UUID(int=7))
CURSOR = encode_cursor(PLACE, KEY)


@given(
    created_at=st.datetimes(timezones=st.just(UTC)),
    job_id=st.uuids(),
    key=st.binary(min_size=32, max_size=32),
)
@example(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), UUID(int=0), KEY)
def test_a_cursor_names_its_place_exactly(created_at: datetime, job_id: UUID, key: bytes) -> None:
    place = Place(created_at, job_id)
    assert decode_cursor(encode_cursor(place, key), key) == place


def test_a_cursor_can_stand_in_a_url_as_it_is() -> None:
    assert len(CURSOR) == 54
    assert set(CURSOR) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize("position", range(54))
def test_no_character_of_a_cursor_can_be_changed(position: int) -> None:
    other = "A" if CURSOR[position] != "A" else "B"
    with pytest.raises(InvalidCursorError):
        decode_cursor(CURSOR[:position] + other + CURSOR[position + 1 :], KEY)


def test_no_bit_of_a_cursor_can_be_changed() -> None:
    signed = urlsafe_b64decode(CURSOR + "==")
    for bit in range(8 * len(signed)):
        changed = bytearray(signed)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidCursorError):
            decode_cursor(urlsafe_b64encode(changed).decode().rstrip("="), KEY)


def test_a_cursor_signed_with_another_key_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(encode_cursor(PLACE, bytes(32)), KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "eA",
        "e30",
        "W10",
        "=" * 54,
        "é" * 54,
        "\0" * 54,
        CURSOR + "=",
        CURSOR + "==",
        CURSOR + "AAAA",
        CURSOR[:-1],
        CURSOR + "\n",
        " " + CURSOR,
        CURSOR[:20] + "!" + CURSOR[20:],
        CURSOR[:-1] + chr(ord(CURSOR[-1]) + 1),
        "A" * 10_000,
        urlsafe_b64encode(f'["2026-03-01T12:00:00Z","{uuid4()}"]'.encode()).decode(),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError, match="cursor is not valid"):
        decode_cursor(text, KEY)


@given(text=st.text(max_size=80))
def test_no_text_is_an_error_of_another_kind(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(text, KEY)
