"""SIGTERM and SIGINT, once and again, at every point of a worker's life: an end in order.

Every signal is seen by the process before anything that the test holds goes on: it answers a
request after it, in the same loop.
"""

import signal
from itertools import cycle

import pytest
import requests
from sqlalchemy import Engine, text

from tests.support.faults import WORKER, waiting_for_a_lock
from tests.support.held import (
    ACCEPTANCE_COMMIT,
    CLAIM_COMMIT,
    FLUSH_STATEMENT,
    RECOVERY_COMMIT,
    held,
)
from tests.support.jobs import Jobs
from tests.support.processes import Process
from tests.support.recording import EXPIRED, SHORT_LEASE, RecordingProvider
from tests.support.waiting import until

_TERM, _INT = signal.SIGTERM, signal.SIGINT
_ONCE_AND_AGAIN = pytest.mark.parametrize(
    "numbers",
    [[_TERM], [_INT], [_TERM, _TERM], [_INT, _TERM]],
    ids=lambda numbers: "+".join(number.name for number in numbers),
)
_Signals = list[signal.Signals]


def _held(engine: Engine) -> None:
    until(lambda: waiting_for_a_lock(engine, WORKER) == 1, "the worker to be held")


def _signalled(worker: Process, numbers: _Signals) -> None:
    """Send the signals, each when the one before it has been seen."""
    for number in numbers:
        worker.popen.send_signal(number)
        assert requests.get(f"{worker.url}/health", timeout=5).ok


def _drained(
    worker: Process, *, released: int = 0, abandoned: int = 0, unrecorded: int = 0
) -> None:
    assert worker.popen.wait(20) == 0
    last = worker.lines()[-1]
    assert last["msg"] == "worker.drained"
    counted = (last["released"], last["abandoned"], last["unrecorded"])
    assert counted == (released, abandoned, unrecorded)
    assert not worker.errors()


@_ONCE_AND_AGAIN
def test_jobs_whose_claim_comes_too_late_go_back_untried(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, numbers: _Signals
) -> None:
    with held(engine, CLAIM_COMMIT):
        added = jobs.add(3)
        as_added = [jobs.row(job_id) for job_id in added]
        worker = provider.running(**SHORT_LEASE)
        _held(engine)
        _signalled(worker, numbers)
    _drained(worker, released=3)
    for row, before in zip(map(jobs.row, added), as_added, strict=True):
        assert (row["status"], row["attempt_count"], row["locked_by"]) == ("PENDING", 0, None)
        assert row["next_attempt_at"] == before["next_attempt_at"]
    assert {line["jobId"] for line in worker.lines("job.released")} == set(map(str, added))
    assert not provider.calls()


def test_a_claim_on_its_way_is_awaited_even_without_patience(
    provider: RecordingProvider, jobs: Jobs, engine: Engine
) -> None:
    with held(engine, CLAIM_COMMIT):
        jobs.add(3)
        worker = provider.running(**SHORT_LEASE, WORKER_SHUTDOWN_TIMEOUT_MS=0)
        _held(engine)
        _signalled(worker, [_TERM])
    _drained(worker, released=3)
    assert jobs.statuses() == {"PENDING": 3}


@_ONCE_AND_AGAIN
def test_running_deliveries_are_finished_and_recorded_and_nothing_new_begins(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, numbers: _Signals
) -> None:
    added = jobs.add(10)
    with held(engine, ACCEPTANCE_COMMIT):
        worker = provider.running(WORKER_CONCURRENCY=3)
        until(lambda: len(provider.calls("begun")) == 3, "three deliveries to run")
        _signalled(worker, numbers)
        assert not provider.calls("accepted")
    _drained(worker)
    sent = {call.key for call in provider.calls("accepted")}
    assert len(sent) == len(provider.calls("begun")) == 3
    for row in map(jobs.row, added):
        end = ("SENT", 1) if str(row["id"]) in sent else ("PENDING", 0)
        assert (row["status"], row["attempt_count"]) == end
    assert jobs.one("SELECT count(*) FROM job_queue WHERE due_at <= now()") == 7


@_ONCE_AND_AGAIN
def test_a_flush_on_its_way_is_finished(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, numbers: _Signals
) -> None:
    with held(engine, FLUSH_STATEMENT):
        jobs.add(3)
        worker = provider.running()
        _held(engine)
        _signalled(worker, numbers)
        assert jobs.statuses() == {"PROCESSING": 3}
    _drained(worker)
    assert jobs.statuses() == {"SENT": 3}
    assert len(worker.lines("job.sent")) == 3


@_ONCE_AND_AGAIN
def test_a_recovery_on_its_way_is_finished_and_what_it_took_back_stays_waiting(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, numbers: _Signals
) -> None:
    added = jobs.add(3)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'gone',"
        " locked_at = now() - interval '1 hour', attempt_count = 1"
    )
    with held(engine, RECOVERY_COMMIT):
        worker = provider.running(**SHORT_LEASE)
        _held(engine)
        _signalled(worker, numbers)
    assert worker.popen.wait(20) == 0
    # A pass that was on its way as well may have claimed them: then they have gone back.
    _drained(worker, released=len(worker.lines("job.released")))
    for row in map(jobs.row, added):
        assert (row["status"], row["attempt_count"]) == ("PENDING", 1)
        assert row["last_error"] == EXPIRED
    [line] = worker.lines("jobs.recovered")
    assert (line["requeued"], line["deadLettered"]) == (3, 0)
    assert not provider.calls()


def test_signals_without_end_change_nothing(provider: RecordingProvider, jobs: Jobs) -> None:
    jobs.add(50)
    worker = provider.running(MOCK_LATENCY_MS=300)
    until(lambda: len(provider.calls("begun")) == 50, "the deliveries to run")
    numbers = cycle([_TERM, _INT])

    def ended() -> bool:
        worker.popen.send_signal(next(numbers))
        return worker.popen.poll() is not None

    until(ended, "the worker to end")
    _drained(worker)
    assert jobs.statuses() == {"SENT": 50}


def test_a_delivery_that_outlasts_the_patience_is_left_to_recovery(
    provider: RecordingProvider, jobs: Jobs
) -> None:
    jobs.add()
    worker = provider.running(**SHORT_LEASE, WORKER_SHUTDOWN_TIMEOUT_MS=0, MOCK_LATENCY_MS=1800)
    until(lambda: provider.calls("begun"), "the delivery to run")
    worker.popen.send_signal(_TERM)
    _drained(worker, abandoned=1)
    assert jobs.statuses() == {"PROCESSING": 1}
    _sent_by_the_next(provider, jobs)
    assert [call.event for call in provider.calls()] == ["begun", "begun", "accepted"]


def test_a_result_that_cannot_be_written_is_left_to_recovery(
    provider: RecordingProvider, jobs: Jobs, engine: Engine
) -> None:
    jobs.add()
    with held(engine, FLUSH_STATEMENT):
        worker = provider.running(WORKER_SHUTDOWN_TIMEOUT_MS=0)
        _held(engine)
        worker.popen.send_signal(_TERM)
        _drained(worker, unrecorded=1)
    assert jobs.statuses() == {"PROCESSING": 1}
    _sent_by_the_next(provider, jobs)
    events = [call.event for call in provider.calls()]
    assert events == ["begun", "accepted", "begun", "duplicate"]


def _sent_by_the_next(provider: RecordingProvider, jobs: Jobs) -> None:
    provider.start(**SHORT_LEASE)
    until(lambda: jobs.statuses() == {"SENT": 1}, "the next worker to deliver")
    assert jobs.one("SELECT attempt_count FROM notification_jobs") == 2


@pytest.mark.parametrize("number", [_TERM, _INT])
def test_a_worker_that_is_told_to_stop_while_it_starts_does(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, number: signal.Signals
) -> None:
    jobs.add()
    with engine.begin() as connection:
        # What a worker asks first is the version of the schema.
        connection.execute(text("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE"))
        worker = provider.start()
        _held(engine)
        worker.popen.send_signal(number)
        assert worker.popen.poll() is None
    _drained(worker)
    assert jobs.statuses() == {"PENDING": 1}
    assert not provider.calls()
