"""Use cases that keep their jobs in a dictionary: the API's seam, without a database."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from notify_queue.api.app import UseCases, create_app
from notify_queue.api.blueprints.mock_webhooks import MockReceiverUseCases
from notify_queue.api.blueprints.notifications import NotificationUseCases
from notify_queue.domain.errors import (
    KeyReusedError,
    NotCancellableError,
    NotFoundError,
    NotRedrivableError,
    ScheduleTooFarError,
)
from notify_queue.domain.fingerprint import fingerprint
from notify_queue.domain.job import Channel, Job, NotificationRequest, Priority
from notify_queue.domain.lifecycle import CANCELLABLE, REDRIVABLE, Status
from notify_queue.domain.page import Filter, Page, decode_cursor, encode_cursor, place_of
from notify_queue.domain.redrive import Selection
from notify_queue.domain.schedule import HORIZON_DAYS, within_horizon
from notify_queue.metrics.health import Health
from notify_queue.notifications.redrive import Redriven
from notify_queue.notifications.schedule import Scheduled

# No test depends on the day it runs on.
NOW = datetime(2026, 3, 1, 12, 0, 0, 123_999, tzinfo=UTC)
# When operators do what they do.
LATER = NOW + timedelta(hours=1)
CURSOR_KEY = b"k" * 32


@dataclass
class InMemoryQueue:
    """Answers as the real use cases do; ``fails_with`` makes every one of them raise."""

    requests: list[NotificationRequest] = field(default_factory=list)
    listings: list[tuple[Filter, int, str | None]] = field(default_factory=list)
    redrives: list[tuple[Selection, int]] = field(default_factory=list)
    jobs: dict[UUID, Job] = field(default_factory=dict)
    up: bool = True
    fails_with: Exception | None = None

    def app(self, role: str = "api", mock_receiver: MockReceiverUseCases | None = None) -> Flask:
        """Make the application on top of this queue, with a mock receiver if there is one."""
        use_cases = NotificationUseCases(
            schedule=self.schedule,
            read=self.read,
            list_page=self.list_page,
            cancel=self.cancel,
            redrive_one=self.redrive_one,
            redrive_many=self.redrive_many,
        )
        return create_app(UseCases(use_cases, self.health, mock_receiver), role)

    def add(self, **changes: Any) -> Job:
        """Keep a job that nobody asked for, with these changes to a new one."""
        request = NotificationRequest(
            recipient="ada@example.com",
            channel=Channel.EMAIL,
            payload={},
            priority=Priority.NORMAL,
            idempotency_key=f"added-{len(self.jobs)}",
        )
        job = replace(make_job(request), **changes)
        self.jobs[job.id] = job
        return job

    def schedule(self, request: NotificationRequest) -> Scheduled:
        """Keep a job for the request, or find the one under its key."""
        self._fail()
        if request.send_at and not within_horizon(request.send_at, NOW):
            raise ScheduleTooFarError(HORIZON_DAYS)
        key = request.idempotency_key
        for earlier in self.requests:
            if earlier.idempotency_key == key:
                if fingerprint(earlier) != fingerprint(request):
                    raise KeyReusedError(key)
                (job,) = (job for job in self.jobs.values() if job.idempotency_key == key)
                return Scheduled(job, replayed=True)
        job = make_job(request)
        self.requests.append(request)
        self.jobs[job.id] = job
        return Scheduled(job, replayed=False)

    def read(self, job_id: UUID) -> Job:
        """Find a job."""
        self._fail()
        if job_id not in self.jobs:
            raise NotFoundError(job_id)
        return self.jobs[job_id]

    def list_page(self, wanted: Filter, limit: int, cursor: str | None) -> Page:
        """Show the newest jobs that are wanted, behind the cursor."""
        self._fail()
        self.listings.append((wanted, limit, cursor))
        after = None if cursor is None else decode_cursor(cursor, CURSOR_KEY)
        found = [
            job
            for job in reversed(self._oldest_first(lambda job: _shown(job, wanted)))
            if after is None or _order(job) < (after.created_at, after.job_id)
        ]
        items = found[:limit]
        more = len(found) > limit
        return Page(items, encode_cursor(place_of(items[-1]), CURSOR_KEY) if more else None)

    def cancel(self, job_id: UUID) -> Job:
        """Cancel a job that waits."""
        job = self.read(job_id)
        if job.status is Status.CANCELLED:
            return job
        if job.status not in CANCELLABLE:
            raise NotCancellableError(job_id, job.status)
        return self._write(
            job,
            status=Status.CANCELLED,
            next_attempt_at=None,
            cancelled_at=LATER,
        )

    def redrive_one(self, job_id: UUID) -> Job:
        """Put a job back to work."""
        job = self.read(job_id)
        if job.status not in REDRIVABLE:
            raise NotRedrivableError(job_id, job.status)
        return self._redrive(job)

    def redrive_many(self, selection: Selection, limit: int) -> Redriven:
        """Put the oldest of the selected jobs back to work."""
        self._fail()
        self.redrives.append((selection, limit))
        selected = self._oldest_first(
            lambda job: _shown(job, Filter(selection.status, selection.recipient))
        )
        for job in selected[:limit]:
            self._redrive(job)
        return Redriven(len(selected[:limit]), len(selected[limit:]))

    def health(self) -> Health:
        """Say what the test wants to be said."""
        return Health(up=self.up, response_time_ms=7)

    def _fail(self) -> None:
        if self.fails_with:
            raise self.fails_with

    def _oldest_first(self, wanted: Callable[[Job], bool]) -> list[Job]:
        return sorted((job for job in self.jobs.values() if wanted(job)), key=_order)

    def _redrive(self, job: Job) -> Job:
        return self._write(
            job,
            status=Status.PENDING,
            next_attempt_at=LATER,
            attempt_count=0,
            max_attempts=6,
            failed_at=None,
            dead_lettered_at=None,
            redrive_count=job.redrive_count + 1,
            last_redriven_at=LATER,
        )

    def _write(self, job: Job, **changes: Any) -> Job:
        self.jobs[job.id] = replace(job, updated_at=LATER, **changes)
        return self.jobs[job.id]


def _order(job: Job) -> tuple[datetime, UUID]:
    return job.created_at, job.id


def _shown(job: Job, wanted: Filter) -> bool:
    return wanted.status in {None, job.status} and wanted.recipient in {None, job.recipient}


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
