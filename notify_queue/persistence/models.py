"""The tables as the code sees them. What they are is decided by ``migrations/``; a test compares.

``NotificationJob`` is the ledger, one row per notification for ever; ``QueueEntry`` is the work,
one small row per live job; ``JobOverview`` is the view that joins the two (docs/architecture.md).
"""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import CHAR, DateTime, ForeignKey, SmallInteger, String, Text, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.schema import Computed
from sqlalchemy.types import Uuid


class Base(DeclarativeBase):
    """Maps Python types to the column types used throughout."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB,
        UUID: Uuid,
    }


class NotificationJob(Base):
    """What was asked for, and what became of it."""

    __tablename__ = "notification_jobs"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(255), unique=True)
    request_fingerprint: Mapped[str | None] = mapped_column(CHAR(64))
    recipient: Mapped[str] = mapped_column(String(320))
    channel: Mapped[str] = mapped_column(String(16))
    payload: Mapped[dict[str, Any]]
    priority: Mapped[int] = mapped_column(SmallInteger)
    scheduled_at: Mapped[datetime]
    outcome: Mapped[str | None] = mapped_column(String(16))
    unsent_outcome: Mapped[str | None] = mapped_column(
        String(16), Computed("nullif(outcome, 'SENT')", persisted=True)
    )
    ended_at: Mapped[datetime | None]
    attempt_count: Mapped[int] = mapped_column(server_default="0")
    max_attempts: Mapped[int]
    last_error: Mapped[str | None] = mapped_column(Text)
    redrive_count: Mapped[int] = mapped_column(server_default="0")
    last_redriven_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class QueueEntry(Base):
    """A live job: when it is due, how urgent it is, who holds it."""

    __tablename__ = "job_queue"

    job_id: Mapped[UUID] = mapped_column(
        ForeignKey(NotificationJob.id, ondelete="CASCADE"), primary_key=True
    )
    priority: Mapped[int] = mapped_column(SmallInteger)
    due_at: Mapped[datetime]
    recipient: Mapped[str] = mapped_column(String(320))
    rate_limited: Mapped[bool] = mapped_column(server_default="false")
    gate: Mapped[str | None] = mapped_column(String(320), ForeignKey("rate_limit_gates.recipient"))
    attempt_count: Mapped[int] = mapped_column(server_default="0")
    max_attempts: Mapped[int]
    reconciliation_granted: Mapped[bool] = mapped_column(server_default="false")
    claim_token: Mapped[UUID | None]
    locked_by: Mapped[str | None] = mapped_column(String(128))
    locked_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class Reservation(Base):
    """The slot that a notification holds since its last attempt was over."""

    __tablename__ = "rate_limit_reservations"

    job_id: Mapped[UUID] = mapped_column(
        ForeignKey(NotificationJob.id, ondelete="CASCADE"), primary_key=True
    )
    recipient: Mapped[str] = mapped_column(String(320))
    reserved_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class RecipientGate(Base):
    """Where the parked jobs of a recipient wait for its next slot."""

    __tablename__ = "rate_limit_gates"

    recipient: Mapped[str] = mapped_column(String(320), primary_key=True)
    opens_at: Mapped[datetime]
    priority: Mapped[int] = mapped_column(SmallInteger)
    max_notifications: Mapped[int]
    window_seconds: Mapped[int]


class SentJob(Base):
    """Where a sent job stands in the listings. The database writes it, whoever sends the job."""

    __tablename__ = "sent_jobs"

    created_at: Mapped[datetime] = mapped_column(primary_key=True)
    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    recipient: Mapped[str] = mapped_column(String(320))


class OutboxEvent(Base):
    """What the webhook's receiver is to be told of an ended job, and how far that has got."""

    __tablename__ = "webhook_events"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    job_id: Mapped[UUID] = mapped_column(ForeignKey(NotificationJob.id, ondelete="CASCADE"))
    status: Mapped[str] = mapped_column(String(16))
    attempt_count: Mapped[int]
    redrive_count: Mapped[int] = mapped_column(server_default="0")
    occurred_at: Mapped[datetime]
    dispatch_attempts: Mapped[int] = mapped_column(server_default="0")
    forgiven_attempts: Mapped[int] = mapped_column(server_default="0")
    next_attempt_at: Mapped[datetime] = mapped_column(server_default=func.now())
    leased_until: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
    delivered_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MockProviderDelivery(Base):
    """The mock provider's own record of a key it has accepted."""

    __tablename__ = "mock_provider_deliveries"

    delivery_key: Mapped[str] = mapped_column(String(255), primary_key=True)
    message_id: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())
    recipient: Mapped[str] = mapped_column(String(320))
    channel: Mapped[str] = mapped_column(String(16))
    delivered_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MockWebhookReceipt(Base):
    """The mock receiver's own record of an event it has got."""

    __tablename__ = "mock_webhook_receipts"

    event_id: Mapped[UUID] = mapped_column(primary_key=True)
    job_id: Mapped[UUID]
    status: Mapped[str] = mapped_column(String(16))
    received_count: Mapped[int] = mapped_column(server_default="1")
    first_received_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_received_at: Mapped[datetime] = mapped_column(server_default=func.now())


class SigningKey(Base):
    """A key that all processes share, made by the database when the schema was."""

    __tablename__ = "signing_keys"

    purpose: Mapped[str] = mapped_column(String(32), primary_key=True)
    key: Mapped[bytes]


class Views(DeclarativeBase):
    """Views have a metadata of their own: nothing may try to create them as tables."""

    type_annotation_map: ClassVar[dict[Any, Any]] = Base.type_annotation_map


class JobOverview(Views):
    """Ledger and queue as one row per job, under the names operators know. Read only."""

    __tablename__ = "job_overview"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    idempotency_key: Mapped[str]
    request_fingerprint: Mapped[str | None]
    recipient: Mapped[str]
    channel: Mapped[str]
    priority: Mapped[int]
    status: Mapped[str]
    scheduled_at: Mapped[datetime]
    next_attempt_at: Mapped[datetime | None]
    attempt_count: Mapped[int]
    max_attempts: Mapped[int]
    last_error: Mapped[str | None]
    sent_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    dead_lettered_at: Mapped[datetime | None]
    cancelled_at: Mapped[datetime | None]
    redrive_count: Mapped[int]
    last_redriven_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
