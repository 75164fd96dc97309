"""The schemas of the mock receiver: the event it gets, and its receipt."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from marshmallow import fields, post_load

from notify_queue.api.schemas.base import CamelCaseSchema
from notify_queue.api.schemas.fields import AnyInstant, Choice, Count, Identifier
from notify_queue.domain.webhook_event import EVENT_STATUSES


@dataclass(frozen=True, slots=True)
class MockWebhook:
    """An event as the mock receiver counts it."""

    event_id: UUID
    job_id: UUID
    status: str


class MockWebhookSchema(CamelCaseSchema):
    """The body of ``POST /webhooks/mock``. The order is that of the messages."""

    event_id = Identifier()
    job_id = Identifier()
    status = Choice(EVENT_STATUSES)
    attempt_count = Count()
    timestamp = AnyInstant()
    redrive_count = Count(required=False)

    @post_load
    def build(self, data: dict[str, Any], **_: Any) -> MockWebhook:
        """Keep what is counted; the rest only has to be well formed."""
        return MockWebhook(UUID(data["event_id"]), UUID(data["job_id"]), data["status"])


class MockReceiptSchema(CamelCaseSchema):
    """What the mock receiver answers."""

    event_id = fields.UUID()
    duplicate = fields.Boolean()
    received_count = fields.Integer()
