"""From an HTTP request to a delivered notification, and the other ways it can end."""

from typing import Any

import requests

from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_QUICK_RETRIES = {"BASE_RETRY_DELAY_MS": 10, "MAX_RETRY_DELAY_MS": 20}


def _shown(api: Process, job_id: str) -> dict[str, Any]:
    answer = requests.get(f"{api.url}/notifications/{job_id}", timeout=5)
    assert answer.status_code == 200
    shown: dict[str, Any] = answer.json()
    return shown


def _when_over(api: Process, job_id: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        shown = _shown(api, job_id)
        return None if shown["status"] in {"PENDING", "PROCESSING"} else shown

    found = until(over, f"job {job_id} to end")
    assert found is not None
    return found


def test_a_scheduled_notification_is_delivered_once_and_not_before_it_is_due(
    processes: Processes, jobs: Jobs
) -> None:
    api = processes.start("api")
    processes.running("worker", MOCK_FAILURE_RATE=0)
    api.wait_until_healthy()

    answer = post(api, a_body(recipient="ada@example.com", delaySeconds=1))
    assert answer.status_code == 201
    assert answer.headers["Idempotent-Replayed"] == "false"
    assert answer.json()["status"] == "PENDING"

    shown = _when_over(api, answer.json()["id"])
    assert (shown["status"], shown["attemptCount"], shown["lastError"]) == ("SENT", 1, None)
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 1
    on_time = jobs.one(
        "SELECT d.recipient = j.recipient AND d.delivered_at >= j.scheduled_at"
        " FROM mock_provider_deliveries d, notification_jobs j"
    )
    assert on_time is True


def test_a_notification_that_cannot_be_delivered_says_why(processes: Processes, jobs: Jobs) -> None:
    api = processes.start("api", MAX_RETRIES=1)
    processes.running("worker", MOCK_FAILURE_RATE=1, **_QUICK_RETRIES)
    api.wait_until_healthy()

    refused = post(api, a_body(recipient="invalid@example.com")).json()["id"]
    unlucky = post(api, a_body(recipient="ada@example.com")).json()["id"]

    shown = _when_over(api, refused)
    assert (shown["status"], shown["attemptCount"]) == ("FAILED", 1)
    assert shown["lastError"] == "Recipient rejected by provider"
    assert shown["failedAt"] is not None
    shown = _when_over(api, unlucky)
    assert (shown["status"], shown["attemptCount"], shown["maxAttempts"]) == ("DEAD_LETTERED", 2, 2)
    assert shown["lastError"] == "Simulated provider outage"
    assert shown["deadLetteredAt"] is not None
    assert jobs.one("SELECT count(*) FROM job_queue") == 0
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 0
