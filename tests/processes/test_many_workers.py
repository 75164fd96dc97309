"""Many worker processes share one queue and none does another's work again."""

from collections import Counter, defaultdict
from typing import Any

from tests.support.jobs import Jobs
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_ATTEMPTS = {"job.sent", "job.retry", "job.dead_letter"}


def _start_workers(processes: Processes, count: int, **settings: str | float) -> list[Process]:
    """Start workers that take little at a time, so that all of them meet at the queue."""
    workers = [
        processes.start(
            "worker",
            WORKER_POLL_INTERVAL_MS=100,
            WORKER_BATCH_SIZE=20,
            DATABASE_POOL_MAX=4,
            MOCK_LATENCY_MS=0,
            **settings,
        )
        for _ in range(count)
    ]
    for worker in workers:
        worker.wait_until_healthy()
    return workers


def _lines_after_the_end(workers: list[Process]) -> list[dict[str, Any]]:
    """Stop the workers and read what they said about attempts; lines come after the commit."""
    assert [worker.stop() for worker in workers] == [0] * len(workers)
    return [line for worker in workers for line in worker.lines() if line["msg"] in _ATTEMPTS]


def test_ten_workers_deliver_two_thousand_jobs_once_each(processes: Processes, jobs: Jobs) -> None:
    workers = _start_workers(processes, 10, MOCK_FAILURE_RATE=0)
    added = {str(job_id) for job_id in jobs.add(2000)}
    until(lambda: jobs.statuses() == {"SENT": 2000}, "every job to be sent", 60)
    lines = _lines_after_the_end(workers)

    assert Counter(line["msg"] for line in lines) == {"job.sent": 2000}
    assert {line["jobId"] for line in lines} == added
    assert not any(line["duplicate"] for line in lines)
    assert len({line["workerId"] for line in lines}) > 1
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 2000
    assert jobs.one("SELECT count(*) FROM notification_jobs WHERE attempt_count <> 1") == 0
    assert jobs.one("SELECT count(*) FROM job_queue") == 0


def test_with_a_failing_provider_the_ledger_counts_the_attempts_that_were_made(
    processes: Processes, jobs: Jobs
) -> None:
    workers = _start_workers(
        processes, 4, MOCK_FAILURE_RATE=0.3, BASE_RETRY_DELAY_MS=10, MAX_RETRY_DELAY_MS=40
    )
    # One failed attempt in three, three attempts: about 16 of 600 are given up.
    added = jobs.add(600, max_attempts=3)
    until(lambda: jobs.one("SELECT count(*) FROM job_queue") == 0, "the queue to be empty", 60)
    made: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in _lines_after_the_end(workers):
        made[line["jobId"]].append(line)

    for job_id in added:
        row = jobs.row(job_id)
        attempts = sorted(made[str(job_id)], key=lambda line: line["attempt"])
        assert [line["attempt"] for line in attempts] == list(range(1, row["attempt_count"] + 1))
        last = {"job.sent": "SENT", "job.dead_letter": "DEAD_LETTERED"}[attempts[-1]["msg"]]
        assert row["status"] == last
        assert last == "SENT" or row["attempt_count"] == 3
        assert {line["msg"] for line in attempts[:-1]} <= {"job.retry"}
    sent = jobs.statuses()["SENT"]
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == sent
    assert sum(len(lines) for lines in made.values()) > 600
