"""What a caller asks for, and what is known of a job at one moment."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

from notify_queue.domain.lifecycle import Status


class Channel(StrEnum):
    """How a notification travels."""

    EMAIL = "EMAIL"
    SMS = "SMS"
    PUSH = "PUSH"


class Priority(IntEnum):
    """How urgent a job is; a larger number goes first."""

    HIGH = 3
    NORMAL = 2
    LOW = 1


@dataclass(frozen=True, slots=True)
class NotificationRequest:
    """All that a caller said. Exactly one of ``send_at`` and ``delay_seconds`` is set."""

    recipient: str
    channel: Channel
    payload: dict[str, Any]
    priority: Priority
    idempotency_key: str
    send_at: datetime | None = None
    delay_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A request made ready for the ledger: identified, fingerprinted, with its attempt budget."""

    id: UUID
    request: NotificationRequest
    fingerprint: str
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Job:
    """One job at one moment, as operators and callers see it; never its payload or its claim.

    ``next_attempt_at`` is None once the job has ended: nothing is going to be attempted.
    """

    id: UUID
    idempotency_key: str
    recipient: str
    channel: Channel
    priority: Priority
    status: Status
    scheduled_at: datetime
    next_attempt_at: datetime | None
    attempt_count: int
    max_attempts: int
    last_error: str | None
    sent_at: datetime | None
    failed_at: datetime | None
    dead_lettered_at: datetime | None
    cancelled_at: datetime | None
    redrive_count: int
    last_redriven_at: datetime | None
    created_at: datetime
    updated_at: datetime
