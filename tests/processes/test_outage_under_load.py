"""The database goes away while everything is in motion, and nothing is lost or done again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from tests.support.faults import WORKER, OwnServer, end_sessions, listening, own_server
from tests.support.jobs import Jobs
from tests.support.processes import Process, Processes
from tests.support.recording import RecordingProvider
from tests.support.waiting import until

_JOBS = 400
_OUTAGE_S = 20
_LOOPS = ("poll", "flush", "recovery", "listen")
# The flush loop, and the one for results that go alone.
_SHARE_AN_EVENT = 2
_SHORTEST_PAUSE_S = 0.5
_SETTINGS: dict[str, str | float] = {
    "WORKER_CONCURRENCY": 20,
    "WORKER_POLL_INTERVAL_MS": 1000,
    "WORKER_RECOVERY_INTERVAL_MS": 1000,
    "MOCK_LATENCY_MS": 100,
    "BASE_RETRY_DELAY_MS": 100,
    "MAX_RETRY_DELAY_MS": 500,
}
_UNRECORDED = """
    SELECT array_agg(job_id) FROM job_queue JOIN mock_provider_deliveries
        ON delivery_key = job_id::text WHERE claim_token IS NOT NULL
    HAVING count(*) >= 5 AND count(DISTINCT locked_by) = 2
"""


@pytest.fixture
def own() -> Iterator[OwnServer]:
    with own_server() as own:
        yield own


@pytest.fixture
def provider(own: OwnServer, tmp_path: Path) -> Iterator[RecordingProvider]:
    with Processes(own.url, tmp_path) as processes:
        yield RecordingProvider(processes, tmp_path / "calls.log")


@contextmanager
def _results_pile_up(own: OwnServer) -> Iterator[list[UUID]]:
    """Keep all from writing the ledger until both have results that wait; yield their jobs."""
    jobs = Jobs(own.engine)
    holder = own.engine.connect()
    holder.execute(text("LOCK TABLE notification_jobs IN SHARE MODE"))

    unrecorded: list[UUID] = until(lambda: jobs.one(_UNRECORDED), "results of both to wait")
    yield unrecorded
    # Whatever became of the session: it is thrown away, and the lock with it.
    holder.invalidate()
    holder.close()


def _two_workers_in_motion(
    own: OwnServer, provider: RecordingProvider, lease_s: int
) -> list[Process]:
    jobs = Jobs(own.engine)
    settings = {**_SETTINGS, "JOB_VISIBILITY_TIMEOUT_SECONDS": lease_s}
    workers = [provider.start(**settings) for _ in range(2)]
    for worker in workers:
        worker.wait_until_healthy()
    jobs.add(_JOBS)
    until(lambda: jobs.statuses().get("SENT", 0) >= 20, "deliveries to be under way")
    return workers


def _everything_was_sent_once(
    own: OwnServer, provider: RecordingProvider, workers: list[Process], unrecorded: list[UUID]
) -> None:
    jobs = Jobs(own.engine)
    until(lambda: jobs.statuses() == {"SENT": _JOBS}, "every job to be sent", 60)
    assert jobs.one("SELECT count(*) FROM job_queue") == 0
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == _JOBS
    # What the provider had taken before the cut was recorded after it, without another attempt.
    assert {jobs.row(job_id)["attempt_count"] for job_id in unrecorded} == {1}
    begun = [call.key for call in provider.calls("begun")]
    assert {begun.count(str(job_id)) for job_id in unrecorded} == {1}
    _every_loop_works(own, jobs, workers)
    assert [worker.stop() for worker in workers] == [0, 0]
    sent = [line["jobId"] for worker in workers for line in worker.lines("job.sent")]
    assert len(sent) == len(set(sent)) == _JOBS + 1


def _every_loop_works(own: OwnServer, jobs: Jobs, workers: list[Process]) -> None:
    """Polling and flushing have just been seen; give recovery something, and look who listens."""
    until(lambda: listening(own.engine, WORKER), "the workers to listen again")
    jobs.add(due_in_s=3600)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'gone', due_at = now(),"
        " locked_at = now() - interval '1 day', attempt_count = 1"
    )
    until(lambda: jobs.statuses() == {"SENT": _JOBS + 1}, "a lost claim to be taken back")


@pytest.mark.timeout(180)
def test_twenty_seconds_without_a_database_lose_and_double_nothing(
    own: OwnServer, provider: RecordingProvider
) -> None:
    workers = _two_workers_in_motion(own, provider, lease_s=60)
    with _results_pile_up(own) as unrecorded:
        began = time.monotonic()
        with own.down():
            until(lambda: time.monotonic() > began + _OUTAGE_S, "the outage to be over", 40)
        outage_s = time.monotonic() - began
    failed = {
        loop: [len(worker.lines(f"worker.{loop}_failed")) for worker in workers] for loop in _LOOPS
    }
    _everything_was_sent_once(own, provider, workers, unrecorded)
    # Each loop tried all the time, and none was busy with it.
    most = outage_s / _SHORTEST_PAUSE_S + 2
    for loop, counts in failed.items():
        assert all(5 <= count <= most * _SHARE_AN_EVENT for count in counts), (loop, counts)


def test_a_cut_through_all_connections_loses_and_doubles_nothing(
    own: OwnServer, provider: RecordingProvider
) -> None:
    workers = _two_workers_in_motion(own, provider, lease_s=15)
    with _results_pile_up(own) as unrecorded:
        assert end_sessions(own.engine, WORKER) >= 4
    _everything_was_sent_once(own, provider, workers, unrecorded)
