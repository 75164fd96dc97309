"""The mock receiver with its receipts in memory, and events to send it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from sqlalchemy.orm import sessionmaker

from notify_queue.api.blueprints.mock_webhooks import MockReceiverUseCases
from notify_queue.persistence.repositories.mock_receipts import MockReceipts
from notify_queue.persistence.unit_of_work import UnitOfWork
from notify_queue.webhooks.mock_receiver import ReceiveMockWebhook
from tests.unit.api.in_memory import NOW

URL = "/webhooks/mock"
EVENT_ID = "01a22ed0-04cf-7fea-80f0-128f4495ea99"


@dataclass
class InMemoryReceipts(MockReceipts):
    """How often each event has come, once that is committed."""

    committed: dict[UUID, int] = field(default_factory=dict)

    def count(self, event_id: UUID, job_id: UUID, status: str) -> int:
        """Count one more."""
        assert isinstance(job_id, UUID)
        assert status
        self.event_id = event_id
        return self.committed.get(event_id, 0) + 1


class InMemoryUnit(UnitOfWork):
    """The real one with a session that is bound to nothing."""

    def __init__(self, receipts: InMemoryReceipts) -> None:
        super().__init__(sessionmaker())
        self._receipts = receipts

    def commit(self) -> None:
        """Make the count last."""
        event_id = self._receipts.event_id
        self._receipts.committed[event_id] = self._receipts.committed.get(event_id, 0) + 1

    @cached_property
    def mock_receipts(self) -> MockReceipts:
        """The one store."""
        return self._receipts


def use_cases(receipts: InMemoryReceipts, secrets: Sequence[bytes] = ()) -> MockReceiverUseCases:
    """Make the receiver, at a fixed time of day."""
    mock = ReceiveMockWebhook(lambda: InMemoryUnit(receipts), secrets, lambda: NOW)
    return MockReceiverUseCases(mock.verify, mock.count)


def an_event(**changes: Any) -> dict[str, Any]:
    """Make an event as it is posted, with these changes; ``...`` takes a field out."""
    event: dict[str, Any] = {
        "eventId": EVENT_ID,
        "jobId": "f7765069-6477-4c9b-b348-0f242ede42cb",
        "status": "SENT",
        "attemptCount": 1,
        "timestamp": "2026-03-01T12:00:00.123Z",
        "redriveCount": 0,
    }
    return {name: value for name, value in (event | changes).items() if value is not ...}
