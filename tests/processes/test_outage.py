"""The database goes away and comes back: the loops go on, and nothing private is said about it."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import requests
from sqlalchemy import Engine, text

from tests.support.faults import (
    API,
    WORKER,
    OwnServer,
    end_sessions,
    engine_on,
    own_server,
    waiting_for_a_lock,
    writes_blocked,
)
from tests.support.jobs import Jobs
from tests.support.load import a_body, in_background, post
from tests.support.postgres import Databases
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_POLL_INTERVAL_MS = 400
_MARKER = "planted-marker"
_PRIVATE = {
    "recipient": f"{_MARKER}@example.com",
    "idempotencyKey": _MARKER,
    "payload": {_MARKER: _MARKER},
}


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with own_server() as own:
        yield own


@pytest.fixture
def worker_and_api(own: OwnServer, tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    with Processes(own.url, tmp_path) as processes:
        api = processes.start("api")
        worker = processes.running(
            "worker", WORKER_POLL_INTERVAL_MS=_POLL_INTERVAL_MS, MOCK_FAILURE_RATE=0
        )
        api.wait_until_healthy()
        yield worker, api


def _assert_plain_500(answer: requests.Response) -> None:
    assert answer.status_code == 500
    body = answer.json()
    assert body["statusCode"] == 500
    assert body["error"] == "Internal Server Error"
    assert body["message"] == "An unexpected error occurred"
    assert body["path"] == "/notifications"
    assert body["requestId"] == answer.headers["X-Request-ID"]
    assert _MARKER not in answer.text
    assert _MARKER not in str(answer.headers)


def _assert_said_nothing_private(*processes: Process) -> None:
    for process in processes:
        process.stop()
        assert _MARKER not in process.text()
        assert _MARKER not in process.errors()


def _all_sent(jobs: Jobs, count: int) -> Callable[[], bool]:
    sent = "SELECT count(*) FROM notification_jobs WHERE outcome = 'SENT'"
    return lambda: jobs.one(sent) == count and jobs.one("SELECT count(*) FROM job_queue") == 0


def test_broken_connections_are_replaced(
    own: OwnServer, worker_and_api: tuple[Process, Process]
) -> None:
    worker, api = worker_and_api
    jobs = Jobs(own.engine)
    before = jobs.one("SELECT count(*) FROM notification_jobs")

    assert end_sessions(own.engine, WORKER) >= 1
    assert end_sessions(own.engine, API) >= 1

    assert post(api, a_body()).status_code == 201
    jobs.add(20)
    until(_all_sent(jobs, before + 21), "jobs from after the cut to be sent")
    assert worker.stop() == 0


def test_a_worker_waits_out_an_outage_and_delivers_what_comes_after(
    own: OwnServer, worker_and_api: tuple[Process, Process]
) -> None:
    worker, api = worker_and_api
    jobs = Jobs(own.engine)
    before = jobs.one("SELECT count(*) FROM notification_jobs")

    began = time.monotonic()
    with own.down():
        until(lambda: len(worker.lines("worker.poll_failed")) >= 4, "several polls to fail")
        refused = post(api, a_body(**_PRIVATE))
    outage_s = time.monotonic() - began

    _assert_plain_500(refused)
    jobs.add(20)
    until(_all_sent(jobs, before + 20), "jobs from after the outage to be sent")
    # A pause is at least half an interval. One pass more was under way when the server went.
    most = outage_s * 1000 / (_POLL_INTERVAL_MS / 2) + 1
    failed = worker.lines("worker.poll_failed")
    assert 4 <= len(failed) <= most
    assert len(worker.lines("worker.listen_failed")) <= most
    assert {line["error"]["name"] for line in failed} == {"OperationalError"}
    _assert_said_nothing_private(worker, api)


def test_an_insert_that_loses_its_database_leaks_nothing(
    own: OwnServer, worker_and_api: tuple[Process, Process]
) -> None:
    _, api = worker_and_api
    with writes_blocked(own.engine):
        request = in_background(partial(post, api, a_body(**_PRIVATE)))
        until(lambda: waiting_for_a_lock(own.engine, API) == 1, "the insert to hang")
        end_sessions(own.engine, API)
        _assert_plain_500(request.result())
    [line] = api.lines("http.error")
    assert line["error"]["name"] == "OperationalError"
    _assert_said_nothing_private(api)


def test_a_row_that_the_database_refuses_leaks_nothing(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.clone()
    with engine_on(url) as engine, Processes(url, tmp_path) as processes:
        _refuse_the_marker(engine)
        api = processes.running("api")
        _assert_plain_500(post(api, a_body(**_PRIVATE)))
        assert post(api, a_body()).status_code == 201
        [line] = api.lines("http.error")
        assert line["error"] == {
            "name": "CheckViolation",
            "code": "23514",
            "constraint": "ck_no_marker",
        }
        _assert_said_nothing_private(api)
    databases.drop(url)


def _refuse_the_marker(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "ALTER TABLE notification_jobs ADD CONSTRAINT ck_no_marker"
                f" CHECK (recipient NOT LIKE '{_MARKER}%')"
            )
        )
