"""The mock provider: delivers nothing, behaves like a provider that honours delivery keys."""

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import gevent

from notify_queue.delivery.coalesce import Coalesced
from notify_queue.delivery.provider import Message
from notify_queue.domain.outcome import Delivered, Failed, Outcome, Refused
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

REJECTED_PREFIX: Final = "invalid"


class MockProvider:
    """Accepts each key once, in a record that all workers share, as a real provider's would be.

    ``failure_rate`` is the share of calls that fail for the moment, ``latency_ms`` what each call
    takes, ``random`` draws from [0, 1).
    """

    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        failure_rate: float,
        latency_ms: int,
        random: Callable[[], float],
    ) -> None:
        """Open nothing; calls that arrive together share their statements."""
        self._unit_of_work = unit_of_work
        self._failure_rate = failure_rate
        self._latency_s = latency_ms / 1000
        self._random = random
        self._accepted_before = Coalesced(self._look_up)
        self._accept = Coalesced(self._record)

    def deliver(self, message: Message) -> Outcome:
        """A known key is a duplicate; then a bad recipient; then bad luck; then a delivery."""
        gevent.sleep(self._latency_s)
        known = self._accepted_before(message.delivery_key)
        if known is not None:
            return Delivered(str(known), duplicate=True)
        if message.recipient.startswith(REJECTED_PREFIX):
            return Refused("Recipient rejected by provider")
        if self._random() < self._failure_rate:
            return Failed("Simulated provider outage")
        return self._accept(message)

    def _look_up(self, keys: Sequence[str]) -> list[UUID | None]:
        with self._unit_of_work() as unit:
            accepted = unit.mock_records.accepted(keys)
        return [accepted.get(key) for key in keys]

    def _record(self, messages: Sequence[Message]) -> list[Delivered]:
        """Whoever inserts a key has delivered; a key twice in one round is inserted once."""
        keys = {message.delivery_key: message for message in messages}
        with self._unit_of_work() as unit:
            new = unit.mock_records.accept(
                [
                    {"delivery_key": key, "recipient": each.recipient, "channel": each.channel}
                    for key, each in keys.items()
                ]
            )
            accepted = unit.mock_records.accepted(keys) if len(new) < len(messages) else new
            unit.commit()
        fresh = set(new)
        delivered = []
        for message in messages:
            key = message.delivery_key
            delivered.append(Delivered(str(accepted[key]), duplicate=key not in fresh))
            fresh.discard(key)
        return delivered
