"""The mock receiver: behaves as a receiver should, and only counts what it gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from notify_queue.domain.errors import BadSignatureError
from notify_queue.domain.signature import is_signed
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

_log = get_logger("webhooks.mock_receiver")


@dataclass(frozen=True, slots=True)
class ReceiveMockWebhook:
    """The use case. With ``secrets`` it wants what it gets to be signed with one of them."""

    unit_of_work: UnitOfWorkFactory
    secrets: Sequence[bytes]
    wall_clock: Callable[[], datetime]

    def verify(self, headers: tuple[str, str, str], body: bytes) -> None:
        """Check the exact bytes that came, before anything in them is believed.

        ``headers`` are ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``.

        Raises:
            BadSignatureError: they were not signed with our secret, or not lately.
        """
        now = self.wall_clock().timestamp()
        if self.secrets and not is_signed(headers, body, self.secrets, now):
            raise BadSignatureError

    def count(self, event_id: UUID, job_id: UUID, status: str) -> int:
        """Note the event and return how often it has come."""
        with self.unit_of_work() as unit:
            received = unit.mock_receipts.count(event_id, job_id, status)
            unit.commit()
        _log.info(
            events.WEBHOOK_RECEIVED if received == 1 else events.WEBHOOK_DUPLICATE_IGNORED,
            eventId=str(event_id),
            jobId=str(job_id),
            status=status,
        )
        return received
