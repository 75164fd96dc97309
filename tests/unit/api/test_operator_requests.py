"""``DELETE /notifications/{id}`` and ``POST /notifications/{id}/retry``."""

import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import Status
from tests.unit.api.in_memory import NOW, InMemoryQueue

LATER_TEXT = "2026-03-01T13:00:00.123Z"
OPERATIONS = {"cancel": ("DELETE", ""), "redrive": ("POST", "/retry")}


def ask(client: FlaskClient, operation: str, job_id: object, content: bytes = b"") -> TestResponse:
    """Send an operator's request, with JSON if there is content."""
    method, suffix = OPERATIONS[operation]
    return client.open(
        "/",
        method=method,
        data=content,
        content_type="application/json" if content else None,
        environ_overrides={"RAW_URI": f"/notifications/{job_id}{suffix}"},
    )


def message(response: TestResponse, status: int) -> str:
    """Check the status of an error answer and return its text."""
    assert response.status_code == status
    assert response.json is not None
    assert "details" not in response.json
    text: str = response.json["message"]
    return text


def dead(queue: InMemoryQueue, status: Status = Status.DEAD_LETTERED) -> Job:
    """Add a job that has ended badly."""
    return queue.add(
        status=status,
        next_attempt_at=None,
        attempt_count=3,
        max_attempts=3,
        last_error="mailbox full",
        failed_at=NOW if status is Status.FAILED else None,
        dead_lettered_at=NOW if status is Status.DEAD_LETTERED else None,
    )


class TestCancel:
    """What waits can be cancelled."""

    def test_the_answer_is_the_cancelled_job(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        job = queue.add()
        before = json.loads(client.get(f"/notifications/{job.id}").data)

        response = ask(client, "cancel", job.id)

        assert response.status_code == 200
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert list(json.loads(response.data).items()) == list(
            {
                **before,
                "status": "CANCELLED",
                "nextAttemptAt": None,
                "cancelledAt": LATER_TEXT,
                "updatedAt": LATER_TEXT,
            }.items()
        )
        assert queue.jobs[job.id].status is Status.CANCELLED

    def test_cancelling_again_changes_nothing(
        self, client: FlaskClient, queue: InMemoryQueue
    ) -> None:
        job = queue.add(status=Status.CANCELLED, cancelled_at=NOW, next_attempt_at=None)

        response = ask(client, "cancel", job.id)

        assert response.status_code == 200
        assert response.data == client.get(f"/notifications/{job.id}").data
        assert queue.jobs[job.id] == job

    @pytest.mark.parametrize(
        "status", [Status.PROCESSING, Status.SENT, Status.FAILED, Status.DEAD_LETTERED]
    )
    def test_what_has_begun_or_ended_is_a_conflict(
        self, client: FlaskClient, queue: InMemoryQueue, status: Status
    ) -> None:
        job = queue.add(status=status)
        spelled = str(job.id).upper()

        response = ask(client, "cancel", spelled)

        assert message(response, 409) == (
            f"Notification {spelled} is {status}; only PENDING jobs can be cancelled"
        )
        assert queue.jobs[job.id] == job


class TestRedrive:
    """What has ended badly can be put back."""

    @pytest.mark.parametrize("status", [Status.DEAD_LETTERED, Status.FAILED])
    def test_the_answer_is_the_job_as_it_was_put_back(
        self, client: FlaskClient, queue: InMemoryQueue, status: Status
    ) -> None:
        job = dead(queue, status)
        before = json.loads(client.get(f"/notifications/{job.id}").data)

        response = ask(client, "redrive", job.id)

        assert response.status_code == 200
        assert list(json.loads(response.data).items()) == list(
            {
                **before,
                "status": "PENDING",
                "nextAttemptAt": LATER_TEXT,
                "attemptCount": 0,
                "maxAttempts": 6,
                "failedAt": None,
                "deadLetteredAt": None,
                "redriveCount": 1,
                "lastRedrivenAt": LATER_TEXT,
                "updatedAt": LATER_TEXT,
            }.items()
        )
        assert queue.jobs[job.id].status is Status.PENDING

    def test_a_second_time_is_a_conflict(self, client: FlaskClient, queue: InMemoryQueue) -> None:
        job = dead(queue)
        ask(client, "redrive", job.id)

        assert message(ask(client, "redrive", job.id), 409) == (
            f"Notification {job.id} is PENDING; only DEAD_LETTERED or FAILED jobs can be retried"
        )

    @pytest.mark.parametrize(
        "status", [Status.PENDING, Status.PROCESSING, Status.SENT, Status.CANCELLED]
    )
    def test_what_has_not_ended_badly_is_a_conflict(
        self, client: FlaskClient, queue: InMemoryQueue, status: Status
    ) -> None:
        job = queue.add(status=status)
        spelled = str(job.id).upper()

        response = ask(client, "redrive", spelled)

        assert message(response, 409) == (
            f"Notification {spelled} is {status}; only DEAD_LETTERED or FAILED jobs can be retried"
        )
        assert queue.jobs[job.id] == job


class BusyQueue(InMemoryQueue):
    """A worker takes every job the moment it is written."""

    def redrive_one(self, job_id: UUID) -> Job:
        """Return what was written; by then it is history."""
        written = super().redrive_one(job_id)
        self.jobs[job_id] = replace(written, status=Status.SENT, sent_at=NOW + timedelta(hours=2))
        return written


def test_an_answer_shows_what_was_written_and_not_what_came_after() -> None:
    queue = BusyQueue()
    job = dead(queue)

    response = ask(queue.app().test_client(), "redrive", job.id)

    assert queue.jobs[job.id].status is Status.SENT
    assert response.json is not None
    assert response.json["status"] == "PENDING"
    assert response.json["sentAt"] is None


@pytest.mark.parametrize("operation", OPERATIONS)
class TestEitherOperation:
    """Ids and bodies, as of every other request."""

    @pytest.mark.parametrize("job_id", [str(uuid4()).upper(), str(UUID(int=0))])
    def test_an_unknown_id_is_named_as_it_was_given(
        self, client: FlaskClient, operation: str, job_id: str
    ) -> None:
        response = ask(client, operation, job_id)

        assert message(response, 404) == f"Notification {job_id} not found"

    @pytest.mark.parametrize("segment", ["1", "a%2Fb", "01890000-0000-9000-8000-000000000000"])
    def test_anything_but_a_uuid_is_refused(
        self, client: FlaskClient, operation: str, segment: str
    ) -> None:
        response = ask(client, operation, segment)

        assert message(response, 400) == "Validation failed (uuid is expected)"

    def test_an_id_that_cannot_be_decoded_is_refused_in_its_own_words(
        self, client: FlaskClient, operation: str
    ) -> None:
        response = ask(client, operation, "%zz")

        assert message(response, 400) == "Failed to decode param '%zz'"

    def test_an_id_matches_in_any_encoding(
        self, client: FlaskClient, queue: InMemoryQueue, operation: str
    ) -> None:
        job = queue.add() if operation == "cancel" else dead(queue)

        assert ask(client, operation, str(job.id).replace("-", "%2D")).status_code == 200

    @pytest.mark.parametrize("content", [b"", b"{}", b'{"status": 5, "unknown": [null]}'])
    def test_a_body_is_passed_over(
        self, client: FlaskClient, queue: InMemoryQueue, operation: str, content: bytes
    ) -> None:
        job = queue.add() if operation == "cancel" else dead(queue)

        assert ask(client, operation, job.id, content).status_code == 200

    @pytest.mark.parametrize("content", [b"{", b"[]", b"null", b'{"a": NaN}'])
    def test_a_body_that_is_no_json_object_changes_nothing(
        self, client: FlaskClient, queue: InMemoryQueue, operation: str, content: bytes
    ) -> None:
        job = queue.add() if operation == "cancel" else dead(queue)

        assert ask(client, operation, job.id, content).status_code == 400
        assert queue.jobs[job.id] == job
