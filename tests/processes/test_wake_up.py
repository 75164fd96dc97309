"""A worker that sleeps for half a minute between polls still starts jobs when they are due.

These prove which mechanism wakes it, so their bounds are seconds; how fast it is, is measured
elsewhere.
"""

from datetime import timedelta

from sqlalchemy import Engine

from tests.support.faults import WORKER, listening
from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.processes import Processes
from tests.support.waiting import until

# Longer than any wait of a test: a poll alone would come too late.
_RARELY_MS = 60_000
_SOON_S = 10


def _wait_until_sent(jobs: Jobs, count: int) -> None:
    until(lambda: jobs.statuses() == {"SENT": count}, "the job to be sent", _SOON_S)


def test_a_hint_wakes_an_idle_worker_for_a_job_due_now_and_for_one_due_later(
    processes: Processes, jobs: Jobs, engine: Engine
) -> None:
    # The API hints at what is due before the worker's next poll, so it has to know the interval.
    api = processes.start("api", WORKER_POLL_INTERVAL_MS=_RARELY_MS)
    processes.running("worker", WORKER_POLL_INTERVAL_MS=_RARELY_MS, MOCK_FAILURE_RATE=0)
    api.wait_until_healthy()
    until(lambda: listening(engine, WORKER), "the worker to listen")

    assert post(api, a_body(sendAt="2020-01-01T00:00:00Z")).status_code == 201
    _wait_until_sent(jobs, 1)
    assert post(api, a_body(delaySeconds=2)).status_code == 201
    _wait_until_sent(jobs, 2)

    last = "SELECT max(delivered_at) >= (SELECT max(scheduled_at) FROM notification_jobs)"
    assert jobs.one(f"{last} FROM mock_provider_deliveries") is True


def test_a_worker_that_cannot_listen_wakes_for_a_job_it_has_seen(
    processes: Processes, jobs: Jobs, engine: Engine
) -> None:
    [job_id] = jobs.add(due_in_s=4)
    processes.running(
        "worker", DATABASE_POOL_MAX=1, WORKER_POLL_INTERVAL_MS=_RARELY_MS, MOCK_FAILURE_RATE=0
    )
    to_wait = jobs.one("SELECT due_at - clock_timestamp() FROM job_queue")
    assert to_wait > timedelta(0), "the worker was up too late to have slept"
    assert jobs.row(job_id)["attempt_count"] == 0
    _wait_until_sent(jobs, 1)
    assert not listening(engine, WORKER)


def test_a_worker_that_cannot_listen_finds_new_jobs_by_polling(
    processes: Processes, jobs: Jobs, engine: Engine
) -> None:
    processes.running(
        "worker", DATABASE_POOL_MAX=1, WORKER_POLL_INTERVAL_MS=500, MOCK_FAILURE_RATE=0
    )
    jobs.add()
    _wait_until_sent(jobs, 1)
    assert not listening(engine, WORKER)
