"""Operators act on jobs that workers and other operators want at the same moment."""

from functools import partial
from uuid import UUID

import requests

from tests.support.jobs import Jobs
from tests.support.load import at_once
from tests.support.processes import Process, Processes
from tests.support.recording import RecordingProvider
from tests.support.waiting import until


def _cancel(api: Process, job_id: UUID) -> requests.Response:
    return requests.delete(
        f"{api.url}/notifications/{job_id}", headers={"Connection": "close"}, timeout=30
    )


def _redrive(api: Process) -> dict[str, int]:
    answer = requests.post(
        f"{api.url}/notifications/retry",
        json={"limit": 50},
        headers={"Connection": "close"},
        timeout=30,
    )
    assert answer.status_code == 200
    counted: dict[str, int] = answer.json()
    return counted


def test_two_hundred_cancels_race_two_workers_and_each_job_has_one_winner(
    provider: RecordingProvider, processes: Processes, jobs: Jobs
) -> None:
    api = processes.start("api")
    # Eight calls of a tenth of a second at once: still busy when the cancels come.
    workers = [
        provider.start(WORKER_CONCURRENCY=4, MOCK_LATENCY_MS=100, WORKER_POLL_INTERVAL_MS=50)
        for _ in range(2)
    ]
    for process in (api, *workers):
        process.wait_until_healthy()
    added = jobs.add(200)
    until(lambda: provider.calls("begun"), "the first delivery to run")
    answers = at_once([partial(_cancel, api, job_id) for job_id in added])
    until(lambda: jobs.one("SELECT count(*) FROM job_queue") == 0, "the queue to be empty")

    cancelled = {
        str(job_id)
        for job_id, answer in zip(added, answers, strict=True)
        if answer.status_code == 200
    }
    assert {answer.json()["status"] for answer in answers if answer.ok} == {"CANCELLED"}
    refused = set(map(str, added)) - cancelled
    assert [answer.status_code for answer in answers].count(409) == len(refused)
    assert cancelled
    assert refused
    for row in map(jobs.row, added):
        end = "CANCELLED" if str(row["id"]) in cancelled else "SENT"
        assert row["status"] == end
    # The provider has never heard of what was cancelled, and of the others once.
    begun = [call.key for call in provider.calls("begun")]
    assert sorted(begun) == sorted(refused)
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == len(refused)
    assert len(api.lines("job.cancelled")) == len(cancelled)


def test_five_bulk_redrives_at_once_share_fifty_jobs(
    provider: RecordingProvider, processes: Processes, jobs: Jobs
) -> None:
    api = processes.start("api")
    worker = provider.running()
    api.wait_until_healthy()
    jobs.add(50, due_in_s=3600)
    jobs.run("DELETE FROM job_queue")
    jobs.run(
        "UPDATE notification_jobs SET outcome = 'DEAD_LETTERED', ended_at = now(),"
        " attempt_count = max_attempts, last_error = 'Simulated provider outage'"
    )
    answers = at_once([partial(_redrive, api)] * 5)
    assert sum(answer["retried"] for answer in answers) == 50
    until(lambda: jobs.statuses() == {"SENT": 50}, "every redriven job to be sent")
    assert jobs.one("SELECT count(*) FROM notification_jobs WHERE redrive_count <> 1") == 0
    assert len(provider.calls("begun")) == len(provider.calls("accepted")) == 50
    assert worker.stop() == 0
    lines = api.lines("job.redriven")
    assert len({line["jobId"] for line in lines}) == len(lines) == 50
