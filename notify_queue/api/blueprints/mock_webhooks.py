"""``/webhooks/mock``: a receiver to try webhooks with. Served only when it is switched on."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from uuid import UUID

from flask import Blueprint, Response, g, request

from notify_queue.api.responses import json_response
from notify_queue.api.schemas.base import read
from notify_queue.api.schemas.webhook import MockReceiptSchema, MockWebhookSchema

_WEBHOOK: Final = MockWebhookSchema()
_RECEIPT: Final = MockReceiptSchema()
_SIGNED: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True)
class MockReceiverUseCases:
    """What the mock receiver does with what it gets."""

    verify: Callable[[tuple[str, str, str], bytes], None]
    count: Callable[[UUID, UUID, str], int]


def mock_webhooks(use_cases: MockReceiverUseCases) -> Blueprint:
    """Make the route on these use cases."""
    blueprint = Blueprint("mock_webhooks", __name__)

    @blueprint.post("/webhooks/mock")
    def receive_webhook() -> Response:
        """Check the signature, then the event, and answer how often it has come."""
        event_id, timestamp, signature = (request.headers.get(name, "") for name in _SIGNED)
        use_cases.verify((event_id, timestamp, signature), g.sent)
        webhook = read(_WEBHOOK, g.body)
        received = use_cases.count(webhook.event_id, webhook.job_id, webhook.status)
        receipt = {
            "event_id": webhook.event_id,
            "duplicate": received > 1,
            "received_count": received,
        }
        return json_response(_RECEIPT.dump(receipt), HTTPStatus.OK)

    return blueprint
