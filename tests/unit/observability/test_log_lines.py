"""The shape of a log line."""

import json
import logging
import os
import re
import subprocess
import sys
from io import StringIO
from uuid import UUID

import pytest

from notify_queue.observability import events
from notify_queue.observability.context import bind_request_id, clear_request_id
from notify_queue.observability.logs import configure, get_logger
from tests.unit.observability.conftest import Lines

JOB = UUID("0198c0de-0000-7000-8000-000000000001")


def test_a_line_has_the_base_fields_and_the_event_as_its_message(lines: Lines) -> None:
    get_logger("complete").info(events.JOB_SENT, workerId="w", jobId=JOB, attempt=1, durationMs=52)
    record = lines.only
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("time"))
    assert record == {
        "level": 30,
        "service": "notify-queue",
        "role": "worker",
        "pid": os.getpid(),
        "context": "complete",
        "msg": "job.sent",
        "workerId": "w",
        "jobId": str(JOB),
        "attempt": 1,
        "durationMs": 52,
    }


def test_the_time_is_the_moment_of_the_record(lines: Lines) -> None:
    record = logging.makeLogRecord(
        {"name": "alembic", "levelno": 30, "levelname": "WARNING", "msg": "x", "created": 0.9996}
    )
    logging.getLogger().handle(record)
    assert lines.only["time"] == "1970-01-01T00:00:00.999Z"


def test_levels_are_numbers(lines: Lines) -> None:
    lines.configure("trace")
    log = get_logger("poll")
    for write in (log.debug, log.info, log.warn, log.error):
        write(events.WORKER_DRAINED)
    logging.getLogger("gunicorn.error").critical("stopped")
    logging.getLogger("alembic").log(5, "a detail")
    assert [record["level"] for record in lines.records] == [20, 30, 40, 50, 60, 10]


@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("trace", [20, 30, 40, 50, 60]),
        ("debug", [20, 30, 40, 50, 60]),
        ("info", [30, 40, 50, 60]),
        ("warn", [40, 50, 60]),
        ("error", [50, 60]),
        ("fatal", [60]),
        ("silent", []),
    ],
)
def test_nothing_below_the_level_is_written(level: str, written: list[int], lines: Lines) -> None:
    lines.configure(level)
    log = get_logger("poll")
    for write in (log.debug, log.info, log.warn, log.error):
        write(events.WORKER_DRAINED)
    logging.getLogger("gunicorn.error").critical("stopped")
    assert [record["level"] for record in lines.records] == written


def test_a_request_line_reads_as_method_path_and_status(lines: Lines) -> None:
    get_logger("http").warn(
        events.HTTP_REQUEST,
        msg="GET /nowhere 404",
        requestId="r-1",
        req={"method": "GET", "path": "/nowhere", "query": "recipient=marker"},
        res={"statusCode": 404, "body": "marker"},
        responseTime=3,
    )
    record = lines.only
    assert record["msg"] == "GET /nowhere 404"
    assert record["req"] == {"method": "GET", "path": "/nowhere"}
    assert record["res"] == {"statusCode": 404}
    assert (record["requestId"], record["responseTime"]) == ("r-1", 3)


@pytest.mark.parametrize("readable", [False, True])
@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", "a\u2028b\x85c", 'a" b="c', "\x1b[31m", "\ud800"]
)
def test_a_record_is_one_line_of_ascii_whatever_stands_in_it(
    text: str, *, readable: bool, lines: Lines
) -> None:
    lines.configure(readable=readable)
    get_logger("http").info(events.HTTP_REQUEST, msg=text, requestId=text)
    assert lines.text.endswith("\n")
    assert len(lines.text.splitlines()) == 1
    assert lines.text[:-1].isascii()
    assert lines.text[:-1].isprintable()


def test_each_line_is_one_write_and_is_flushed() -> None:
    class Recorder(StringIO):
        calls: list[str]

        def write(self, text: str) -> int:
            self.calls.append(text)
            return len(text)

        def flush(self) -> None:
            self.calls.append("flush")

    recorder = Recorder()
    recorder.calls = []
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure("info", readable=False, role="api", stream=recorder)
        get_logger("poll").info(events.WORKER_DRAINED, workerId="w")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    line, flush = recorder.calls
    assert json.loads(line)["workerId"] == "w"
    assert (line[-1], flush) == ("\n", "flush")


def test_a_readable_line_is_for_people(lines: Lines) -> None:
    lines.configure(readable=True)
    get_logger("complete").warn(
        events.JOB_RETRY, jobId=JOB, attempt=2, error="it is down", retryInMs=750
    )
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} WARN  worker job\.retry jobId=0198c0de-\S+ attempt=2"
        r' error="it is down" retryInMs=750\n',
        lines.text,
    )


def test_a_logger_made_before_the_configuration_follows_it(lines: Lines) -> None:
    log = get_logger("early")
    lines.configure("error")
    log.warn(events.WORKER_DRAINED)  # noqa: G010 - our logger, not the standard library's
    lines.configure("info")
    log.info(events.WORKER_DRAINED)
    assert lines.only["context"] == "early"


def test_a_stream_that_fails_stops_nothing_and_quotes_nothing(
    lines: Lines, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.stream.close()
    get_logger("poll").info(events.WORKER_DRAINED, workerId="marker")
    assert "marker" not in "".join(capsys.readouterr())


def test_the_request_id_is_on_every_line_until_it_is_cleared(lines: Lines) -> None:
    log = get_logger("http")
    bind_request_id("r-1")
    log.info(events.APP_STARTED, port=1)
    clear_request_id()
    log.info(events.APP_STARTED, port=2)
    first, second = lines.records
    assert first["requestId"] == "r-1"
    assert "requestId" not in second


GREENLETS = """
import gevent
from notify_queue.observability import events
from notify_queue.observability.context import bind_request_id
from notify_queue.observability.logs import configure, get_logger

configure("info", readable=False, role="api")
log = get_logger("http")

def request(name):
    bind_request_id(name)
    gevent.sleep(0)
    log.info(events.WORKER_DISABLED, reason=name)

bind_request_id("outer")
gevent.joinall([gevent.spawn(request, name) for name in "abc"])
gevent.spawn(log.info, events.WORKER_DISABLED, reason="none").join()
"""


def test_greenlets_keep_their_request_ids_apart_and_a_new_one_has_none() -> None:
    run = subprocess.run(
        [sys.executable, "-c", GREENLETS], capture_output=True, text=True, check=True, timeout=30
    )
    records = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(r["reason"], r.get("requestId")) for r in records] == [
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
        ("none", None),
    ]
