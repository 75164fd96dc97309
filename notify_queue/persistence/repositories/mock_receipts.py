"""The mock receiver's own store, which a real receiver would keep at its end."""

from uuid import UUID

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from notify_queue.persistence.models import MockWebhookReceipt as Receipt


class MockReceipts:
    """Which events the mock receiver has got, and how often."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def count(self, event_id: UUID, job_id: UUID, status: str) -> int:
        """Note that an event has come and return how often it has; what it said first stays."""
        seen = insert(Receipt).values(event_id=event_id, job_id=job_id, status=status)
        counted = seen.on_conflict_do_update(
            index_elements=[Receipt.event_id],
            set_={
                "received_count": Receipt.received_count + 1,
                "last_received_at": func.now(),
            },
        ).returning(Receipt.received_count)
        return self._session.execute(counted).scalar_one()
