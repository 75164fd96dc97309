"""What is said of an error: enough to find it, nothing of what it quotes."""

import json
from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest
from psycopg2.errors import UniqueViolation
from sqlalchemy.exc import IntegrityError, StatementError

from notify_queue.observability.redaction import describe_error

MARKER = "alice@example.com"
ROOT = str(Path(__file__).parents[3])


class Diagnostics:
    """The part of a server's answer that names the constraint, and one that quotes the row."""

    constraint_name = "notification_jobs_idempotency_key_key"
    message_detail = f"Key (idempotency_key)=({MARKER}) already exists."


class ServerError(Exception):
    """Shaped like a driver's error that a server has answered with."""

    pgcode = "23505"
    diag = Diagnostics()


def caught(raiser: Callable[[], object], kind: type[BaseException] = Exception) -> BaseException:
    with pytest.raises(kind) as info:
        raiser()
    return info.value


def fail(text: str) -> None:
    raise ValueError(text)


def driver_error() -> UniqueViolation:
    """A real error of psycopg2, made as unpickling makes one: no server is needed."""
    error = UniqueViolation(f"Key (recipient)=({MARKER}) already exists.")
    state = {"pgcode": "23505", "pgerror": MARKER}
    error.__setstate__(state)  # type: ignore[no-untyped-call]  # its stub has no types
    return error


def test_a_database_error_is_its_class_its_code_and_its_constraint() -> None:
    expected = {
        "name": "ServerError",
        "code": "23505",
        "constraint": "notification_jobs_idempotency_key_key",
    }
    assert describe_error(ServerError(MARKER)) == expected
    wrapped = IntegrityError(f"INSERT {MARKER}", {"recipient": MARKER}, ServerError(MARKER))
    assert describe_error(wrapped) == expected


def test_a_real_driver_error_is_described_bare_and_wrapped() -> None:
    expected = {"name": "UniqueViolation", "code": "23505", "constraint": None}
    assert describe_error(driver_error()) == expected
    wrapped = IntegrityError(f"INSERT {MARKER}", {"recipient": MARKER}, driver_error())
    assert describe_error(wrapped) == expected


def test_a_connection_that_failed_has_no_code() -> None:
    error = caught(lambda: psycopg2.connect(host="127.0.0.1", port=1), psycopg2.OperationalError)
    assert describe_error(error) == {"name": "OperationalError", "code": None, "constraint": None}


def test_a_statement_that_never_reached_the_server_is_an_ordinary_error() -> None:
    error = StatementError(MARKER, f"INSERT {MARKER}", {"recipient": MARKER}, ValueError(MARKER))
    assert describe_error(error) == {"name": "StatementError", "stack": []}


def test_any_other_error_is_its_class_and_where_it_came_from() -> None:
    described = describe_error(caught(lambda: fail(MARKER)))
    place = "tests/unit/observability/test_redaction.py"
    assert described["name"] == "ValueError"
    assert described["stack"][-1].startswith(f"{place}:")
    assert described["stack"][-1].endswith(" fail")
    assert "causes" not in described
    assert MARKER not in json.dumps(described)


def test_a_stack_shows_no_path_of_this_machine() -> None:
    stack = describe_error(caught(lambda: json.loads("{"), json.JSONDecodeError))["stack"]
    assert any(frame.startswith("decoder.py:") for frame in stack)
    library = describe_error(caught(lambda: pytest.fail("x"), BaseException))["stack"]
    assert any(frame.startswith("_pytest/") for frame in library)
    assert not [frame for frame in stack + library if frame.startswith("/") or ROOT in frame]


def test_causes_are_told_by_class_alone() -> None:
    def explicit() -> None:
        try:
            fail(MARKER)
        except ValueError as error:
            raise KeyError(MARKER) from error

    def implicit() -> None:
        try:
            explicit()
        except KeyError:
            raise RuntimeError(MARKER)  # noqa: B904 - a cause by context is what is tested

    def suppressed() -> None:
        try:
            fail(MARKER)
        except ValueError:
            raise RuntimeError(MARKER) from None

    described = describe_error(caught(implicit))
    assert described["causes"] == ["KeyError", "ValueError"]
    assert MARKER not in json.dumps(described)
    assert "causes" not in describe_error(caught(suppressed))


def test_causes_in_a_circle_come_to_an_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert len(describe_error(first)["causes"]) == 10


def test_a_runaway_recursion_has_a_short_stack() -> None:
    def dig() -> None:
        dig()

    assert len(describe_error(caught(dig, RecursionError))["stack"]) == 30
