"""The window that judges the limit sees every excess and invents none."""

import pytest

from tests.support.recording import Call
from tests.support.windows import fullest_windows, notifications, told


def _calls(*noted: tuple[float, str]) -> list[Call]:
    return [Call(time, key, "begun", 7) for time, key in noted]


@pytest.mark.parametrize(
    ("noted", "most"),
    [
        ([(0, "a"), (2, "b"), (4, "c")], 1),
        ([(0, "a"), (1.999, "b"), (2, "c")], 2),
        ([(0, "a"), (1, "b"), (1.5, "c"), (2.5, "d")], 3),
        ([(0, "a"), (1, "a"), (1.5, "a"), (1.8, "b")], 2),
        ([(0, "a"), (0, "b"), (0, "c")], 3),
        ([(2.5, "c"), (0, "a"), (1, "b")], 2),
    ],
    ids=["apart", "half-open", "between two", "repeats are one", "at once", "in any order"],
)
def test_the_fullest_window_counts_different_notifications(
    noted: list[tuple[float, str]], most: int
) -> None:
    recipients = dict.fromkeys("abcd", "user@example.com")
    found = fullest_windows(_calls(*noted), recipients, 2)
    assert {who: notifications(window) for who, window in found.items()} == {
        "user@example.com": most
    }


def test_recipients_have_windows_of_their_own() -> None:
    recipients = {"a": "one", "b": "two", "c": "two"}
    found = fullest_windows(_calls((0, "a"), (0.5, "b"), (1, "c")), recipients, 2)
    assert {who: [call.key for call in window] for who, window in found.items()} == {
        "one": ["a"],
        "two": ["b", "c"],
    }


def test_a_window_is_told_by_its_times_and_keys() -> None:
    assert told("user", _calls((100, "a"), (100.25, "b"))) == (
        "user: 2 notifications from 100.000000 on\n"
        "  +0.000000 s  a  begun by process 7\n"
        "  +0.250000 s  b  begun by process 7"
    )
