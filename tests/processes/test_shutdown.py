"""A signal ends a process in order: what runs is finished and recorded, nothing new begins."""

import os
import signal
from functools import partial

import pytest
import requests
from sqlalchemy import Engine

from tests.support.faults import waiting_for_a_lock, writes_blocked
from tests.support.jobs import Jobs
from tests.support.load import a_body, in_background, post
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_TERM, _INT = signal.SIGTERM, signal.SIGINT


@pytest.mark.parametrize("number", [_TERM, _INT])
def test_a_worker_finishes_what_runs_and_starts_nothing_more(
    processes: Processes, jobs: Jobs, number: signal.Signals
) -> None:
    worker = processes.running(
        "worker", WORKER_CONCURRENCY=5, MOCK_LATENCY_MS=800, MOCK_FAILURE_RATE=0
    )
    added = jobs.add(30)
    until(lambda: jobs.statuses().get("PROCESSING") == 5, "five deliveries to run")
    running = [job_id for job_id in added if jobs.row(job_id)["status"] == "PROCESSING"]
    assert worker.stop(number) == 0

    assert {jobs.row(job_id)["status"] for job_id in running} == {"SENT"}
    assert set(jobs.statuses()) == {"SENT", "PENDING"}
    assert jobs.one("SELECT max(attempt_count) FROM job_queue") == 0
    last = worker.lines()[-1]
    assert last["msg"] == "worker.drained"
    assert (last["abandoned"], last["unrecorded"]) == (0, 0)


@pytest.mark.parametrize(
    ("role", "numbers"),
    [
        ("api", [_TERM]),
        ("api", [_TERM, _TERM]),
        ("api", [_INT]),
        ("api", [_INT, _INT]),
        ("all", [_TERM]),
        ("all", [_INT, _INT]),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(one.name for one in value),
)
def test_the_api_answers_what_it_has_accepted(
    processes: Processes, jobs: Jobs, engine: Engine, role: str, numbers: list[signal.Signals]
) -> None:
    api = processes.running(role)
    with writes_blocked(engine):
        request = in_background(partial(post, api, a_body()))
        until(lambda: _hangs(engine, role), "the request to hang")
        for number in numbers:
            _signal_all(api, number)
            until(lambda: not _accepts(api), "the API to close its port")
        # Long enough for whoever acts on a second signal, and well within the lock timeout.
        until(lambda: request.done() or _hangs(engine, role, 1), "the request to hang on")
        assert not request.done()
    assert request.result().status_code == 201
    assert api.popen.wait(20) == 0
    assert jobs.statuses() == {"PENDING": 1}


def _hangs(engine: Engine, role: str, for_s: float = 0) -> bool:
    """Whether a statement of the role has waited for a lock, and for how long at least."""
    return waiting_for_a_lock(engine, f"notify-queue {role}", for_s) == 1


def _signal_all(api: Process, number: signal.Signals) -> None:
    """Signal every process of the role, as a terminal does with Ctrl-C."""
    for pid in {line["pid"] for line in api.lines()} | {api.popen.pid}:
        os.kill(pid, number)


def _accepts(api: Process) -> bool:
    try:
        requests.get(f"{api.url}/health", timeout=5)
    except requests.ConnectionError:
        return False
    return True
