"""The line about the example jobs, and what becomes of a line that is none."""

import pytest

from notify_queue.local.errors import LocalError
from notify_queue.local.examples import describe_seeding


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"seeded": 24, "existing": 0}\n', "Examples: 24 jobs added"),
        (b'{"seeded": 3, "existing": 21}\n', "Examples: 3 jobs added, 21 were there"),
        (b'{"seeded": 0, "existing": 24}\n', "Examples: 24 jobs, added by an earlier run"),
    ],
)
def test_the_line_becomes_a_sentence(line: bytes, said: str) -> None:
    assert describe_seeding(line) == said


@pytest.mark.parametrize("line", [b"", b"Traceback", b"[]", b'{"seeded": 1}', b"\xff"])
def test_anything_else_is_a_failure(line: bytes) -> None:
    with pytest.raises(LocalError, match="without a word"):
        describe_seeding(line)
