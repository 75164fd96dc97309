"""What libraries say comes out in our form, and never with what they quote."""

import logging

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger as GunicornLogger

from tests.unit.observability.conftest import Lines

MARKER = "alice@example.com"


def test_gunicorn_tells_of_its_life_in_its_own_words(lines: Lines) -> None:
    logging.getLogger("gunicorn.error").info("Listening at: %s (%s)", "http://0.0.0.0:3000", 17)
    record = lines.only
    assert record["msg"] == "Listening at: http://0.0.0.0:3000 (17)"
    assert (record["level"], record["context"]) == (30, "gunicorn.error")
    assert (record["service"], record["role"]) == ("notify-queue", "worker")


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("Worker (pid:%s) exited with code %s.", (7, 3), "Worker (pid:7) exited with code 3."),
        ("Error handling request %s", (f"/x?recipient={MARKER}",), "Error handling request ..."),
        (f"Invalid request from ip=10.0.0.1: {MARKER}", (), "Invalid request from ip=10.0.0.1"),
        ("Worker timeout after %d s", (1.5,), "Worker timeout after %d s"),
        ("100% wrong", (), "100% wrong"),
        ("%(path)s is gone", ({"path": MARKER},), "%(path)s is gone"),
    ],
)
def test_gunicorn_tells_of_a_failure_without_the_request(
    template: str, arguments: tuple[object, ...], expected: str, lines: Lines
) -> None:
    for level in (logging.WARNING, logging.ERROR, logging.CRITICAL):
        logging.getLogger("gunicorn.error").log(level, template, *arguments)
    assert {record["msg"] for record in lines.records} == {expected}
    assert MARKER not in lines.text


def test_gunicorn_debug_lines_do_not_quote_requests(lines: Lines) -> None:
    lines.configure("debug")
    logger = logging.getLogger("gunicorn.error")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.debug("%s %s", "GET", f"/x?recipient={MARKER}")
    logger.setLevel(level)
    assert lines.only["msg"] == "... ..."


def test_the_exception_of_a_library_is_named_and_placed_but_not_quoted(lines: Lines) -> None:
    def refuse(recipient: str) -> None:
        raise ValueError(f"{recipient} is no address")

    try:
        refuse(MARKER)
    except ValueError as error:
        logging.getLogger("gunicorn.error").exception("Exception in worker process")
        logging.getLogger("gunicorn.error").exception(error)  # noqa: TRY401 - gunicorn does it
    for record in lines.records:
        assert record["error"] == {"name": "ValueError"}
        assert record["stack"][-1].startswith("tests/unit/observability/test_foreign_records.py:")
    assert MARKER not in lines.text


def test_other_libraries_are_heard_from_a_warning_up_and_only_by_name(lines: Lines) -> None:
    lines.configure("debug")
    for name in ("sqlalchemy.engine.Engine", "sqlalchemy.pool", "urllib3", "alembicx"):
        logging.getLogger(name).info("INSERT %s", MARKER)
        logging.getLogger(name).warning("INSERT %s", MARKER)
    assert [(r["context"], r["level"], r["msg"]) for r in lines.records] == [
        ("sqlalchemy.engine.Engine", 40, "(withheld)"),
        ("sqlalchemy.pool", 40, "(withheld)"),
        ("urllib3", 40, "(withheld)"),
        ("alembicx", 40, "(withheld)"),
    ]
    assert MARKER not in lines.text


def test_migrations_tell_what_they_do(lines: Lines) -> None:
    message = "Running %s %s -> %s"
    logging.getLogger("alembic.runtime.migration").info(message, "upgrade", "0001", "0002")
    assert lines.only["msg"] == "Running upgrade 0001 -> 0002"


def test_a_message_over_several_lines_is_one_line(lines: Lines) -> None:
    logging.getLogger("gunicorn.error").warning("Exception during worker exit:\n%s", MARKER)
    assert len(lines.text.splitlines()) == 1
    assert MARKER not in lines.text


def test_the_handlers_gunicorn_made_are_replaced(
    lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    gunicorn = GunicornLogger(Config())
    gunicorn.error_log.propagate = False
    lines.configure()
    gunicorn.info("Booting worker with pid: %s", 7)
    assert lines.only["msg"] == "Booting worker with pid: 7"
    assert "".join(capsys.readouterr()) == ""
