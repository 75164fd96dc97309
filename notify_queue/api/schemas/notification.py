"""The schemas of a notification: what a caller asks for, and what is shown of a job."""

from typing import Any, Final

from marshmallow import fields, post_load

from notify_queue.api.schemas.base import CamelCaseSchema
from notify_queue.api.schemas.fields import (
    Choice,
    Instant,
    JsonObject,
    OptionalInteger,
    Recipient,
    SendAt,
    Text,
)
from notify_queue.domain.job import Channel, NotificationRequest, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.schedule import MAX_DELAY_SECONDS

_MAX_KEY: Final = 255


class ScheduleNotificationSchema(CamelCaseSchema):
    """The body of ``POST /notifications``. The order of the fields is that of the messages."""

    recipient = Recipient()
    channel = Choice([channel.name for channel in Channel])
    payload = JsonObject()
    send_at = SendAt()
    delay_seconds = OptionalInteger(1, MAX_DELAY_SECONDS)
    priority = Choice([priority.name for priority in Priority])
    idempotency_key = Text(_MAX_KEY)

    @post_load
    def build(self, data: dict[str, Any], **_: Any) -> NotificationRequest:
        """Make the request that the queue understands."""
        words = {"channel": Channel[data["channel"]], "priority": Priority[data["priority"]]}
        return NotificationRequest(**data | words)


class NotificationSchema(CamelCaseSchema):
    """One job as callers see it: exactly these keys, always all of them, in this order."""

    id = fields.UUID()
    idempotency_key = fields.String()
    recipient = fields.String()
    channel = fields.Enum(Channel, metadata={"type": "string"})
    priority = fields.Enum(Priority, metadata={"type": "string"})
    status = fields.Enum(Status, metadata={"type": "string"})
    scheduled_at = Instant()
    next_attempt_at = Instant(allow_none=True)
    attempt_count = fields.Integer()
    max_attempts = fields.Integer()
    last_error = fields.String(allow_none=True)
    sent_at = Instant(allow_none=True)
    failed_at = Instant(allow_none=True)
    dead_lettered_at = Instant(allow_none=True)
    cancelled_at = Instant(allow_none=True)
    redrive_count = fields.Integer()
    last_redriven_at = Instant(allow_none=True)
    created_at = Instant()
    updated_at = Instant()
