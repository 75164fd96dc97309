"""Use cases that keep their jobs in a dictionary: the API's seam, without a database."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from notify_queue.api.app import UseCases, create_app
from notify_queue.domain.errors import KeyReusedError, NotFoundError, ScheduleTooFarError
from notify_queue.domain.fingerprint import fingerprint
from notify_queue.domain.job import Job, NotificationRequest
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.schedule import HORIZON_DAYS, within_horizon
from notify_queue.metrics.health import Health
from notify_queue.notifications.schedule import Scheduled

# No test depends on the day it runs on.
NOW = datetime(2026, 3, 1, 12, 0, 0, 123_999, tzinfo=UTC)


@dataclass
class InMemoryQueue:
    """Answers as the real use cases do; ``fails_with`` makes every one of them raise."""

    requests: list[NotificationRequest] = field(default_factory=list)
    jobs: dict[UUID, Job] = field(default_factory=dict)
    up: bool = True
    fails_with: Exception | None = None

    def app(self, role: str = "api") -> Flask:
        """Make the application on top of this queue."""
        return create_app(UseCases(self.schedule, self.read, self.health), role)

    def schedule(self, request: NotificationRequest) -> Scheduled:
        """Keep a job for the request, or find the one under its key."""
        if self.fails_with:
            raise self.fails_with
        if request.send_at and not within_horizon(request.send_at, NOW):
            raise ScheduleTooFarError(HORIZON_DAYS)
        for earlier, job in zip(self.requests, self.jobs.values(), strict=True):
            if earlier.idempotency_key == request.idempotency_key:
                if fingerprint(earlier) != fingerprint(request):
                    raise KeyReusedError(request.idempotency_key)
                return Scheduled(job, replayed=True)
        job = make_job(request)
        self.requests.append(request)
        self.jobs[job.id] = job
        return Scheduled(job, replayed=False)

    def read(self, job_id: UUID) -> Job:
        """Find a job."""
        if self.fails_with:
            raise self.fails_with
        if job_id not in self.jobs:
            raise NotFoundError(job_id)
        return self.jobs[job_id]

    def health(self) -> Health:
        """Say what the test wants to be said."""
        return Health(up=self.up, response_time_ms=7)


def make_job(request: NotificationRequest) -> Job:
    """Make the job of a request as it is right after it was written."""
    due = request.send_at or NOW + timedelta(seconds=request.delay_seconds or 0)
    return Job(
        id=uuid4(),
        idempotency_key=request.idempotency_key,
        recipient=request.recipient,
        channel=request.channel,
        priority=request.priority,
        status=Status.PENDING,
        scheduled_at=due,
        next_attempt_at=due,
        attempt_count=0,
        max_attempts=6,
        last_error=None,
        sent_at=None,
        failed_at=None,
        dead_lettered_at=None,
        cancelled_at=None,
        redrive_count=0,
        last_redriven_at=None,
        created_at=NOW,
        updated_at=NOW,
    )


def post(client: FlaskClient, body: dict[str, Any]) -> TestResponse:
    """Post a notification, its keys in the order of ``body``."""
    return client.post("/notifications", data=json.dumps(body), content_type="application/json")


def valid_body(**changes: Any) -> dict[str, Any]:
    """Make a body that is accepted, with these changes; ``...`` takes a field out."""
    body: dict[str, Any] = {
        "recipient": "ada@example.com",
        "channel": "EMAIL",
        "payload": {"subject": "Hello"},
        "delaySeconds": 60,
        "priority": "NORMAL",
        "idempotencyKey": "order-1",
    }
    return {name: value for name, value in (body | changes).items() if value is not ...}
