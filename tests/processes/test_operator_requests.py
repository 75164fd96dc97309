"""What operators ask for over HTTP, of a real API on a real database."""

from typing import Any
from uuid import uuid4

import pytest
import requests

from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.processes import Process, Processes

CLOSE = {"Connection": "close"}


@pytest.fixture
def api(processes: Processes) -> Process:
    return processes.running("api")


def ask(api: Process, method: str, path: str, **more: Any) -> requests.Response:
    return requests.request(method, f"{api.url}{path}", headers=CLOSE, timeout=10, **more)


def dead_letter(jobs: Jobs, job_id: str) -> None:
    jobs.run("DELETE FROM job_queue WHERE job_id = :id", id=job_id)
    jobs.run(
        "UPDATE notification_jobs SET outcome = 'DEAD_LETTERED', ended_at = now(),"
        " attempt_count = 6, last_error = 'it broke' WHERE id = :id",
        id=job_id,
    )


def test_a_job_is_scheduled_listed_cancelled_and_then_never_again(api: Process) -> None:
    job = post(api, a_body(delaySeconds=60)).json()
    path = f"/notifications/{job['id']}"
    assert ask(api, "GET", "/notifications").json() == {"items": [job], "nextCursor": None}

    cancelled = ask(api, "DELETE", path)
    assert cancelled.status_code == 200
    assert cancelled.json() == ask(api, "GET", path).json()
    assert cancelled.json()["status"] == "CANCELLED"
    assert ask(api, "DELETE", path).json() == cancelled.json()

    refused = ask(api, "POST", f"{path}/retry")
    assert refused.status_code == 409
    assert refused.json()["message"] == (
        f"Notification {job['id']} is CANCELLED; only DEAD_LETTERED or FAILED jobs can be retried"
    )
    [line] = api.lines("job.cancelled")
    assert line["jobId"] == job["id"]
    assert line["requestId"] == cancelled.headers["X-Request-ID"]


def test_a_dead_letter_is_put_back_once(api: Process, jobs: Jobs) -> None:
    job = post(api, a_body(delaySeconds=60)).json()
    dead_letter(jobs, job["id"])
    path = f"/notifications/{job['id']}"
    refused = ask(api, "DELETE", path)
    assert refused.status_code == 409
    assert refused.json()["message"] == (
        f"Notification {job['id']} is DEAD_LETTERED; only PENDING jobs can be cancelled"
    )
    back = ask(api, "POST", f"{path}/retry")
    assert back.status_code == 200
    assert back.json() == ask(api, "GET", path).json()
    assert (back.json()["status"], back.json()["redriveCount"]) == ("PENDING", 1)
    assert ask(api, "POST", f"{path}/retry").status_code == 409
    [line] = api.lines("job.redriven")
    assert (line["jobId"], line["redriveCount"], line["previousError"]) == (
        job["id"],
        1,
        "it broke",
    )


def test_many_are_put_back_and_the_log_says_for_whom_only_that_it_was_one(
    api: Process, jobs: Jobs
) -> None:
    for recipient in ("a@example.com", "a@example.com", "b@example.com"):
        dead_letter(jobs, post(api, a_body(recipient=recipient, delaySeconds=60)).json()["id"])
    body = {"recipient": "a@example.com", "limit": 1}
    answer = ask(api, "POST", "/notifications/retry", json=body)
    assert (answer.status_code, answer.json()) == (200, {"retried": 1, "remaining": 1})
    assert ask(api, "POST", "/notifications/retry").json() == {"retried": 2, "remaining": 0}
    first, second = api.lines("jobs.redriven")
    assert (first["status"], first["byRecipient"], first["retried"]) == ("DEAD_LETTERED", True, 1)
    assert (second["byRecipient"], second["remaining"]) == (False, 0)
    assert len(api.lines("job.redriven")) == 3
    assert "a@example.com" not in api.text()


def test_pages_lead_from_one_to_the_next(api: Process, jobs: Jobs) -> None:
    jobs.add(7, recipient="a b@example.com", due_in_s=60)
    query: dict[str, str | int] = {"recipient": "a b@example.com", "status": "PENDING", "limit": 3}
    seen: list[str] = []
    for size in (3, 3, 1):
        page = ask(api, "GET", "/notifications", params=query).json()
        assert len(page["items"]) == size
        seen += [job["id"] for job in page["items"]]
        query["cursor"] = page["nextCursor"]
    assert len(set(seen)) == 7
    assert query["cursor"] is None


@pytest.mark.parametrize(("method", "end"), [("DELETE", ""), ("POST", "/retry"), ("GET", "")])
def test_an_unknown_id_is_404_and_no_id_is_400(api: Process, method: str, end: str) -> None:
    unknown = str(uuid4()).upper()
    answer = ask(api, method, f"/notifications/{unknown}{end}")
    assert answer.status_code == 404
    assert answer.json()["message"] == f"Notification {unknown} not found"
    assert ask(api, method, f"/notifications/7{end}").status_code == 400
