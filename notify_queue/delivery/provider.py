"""What a provider is to the worker."""

from dataclasses import dataclass
from typing import Any, Protocol

from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Message:
    """One notification on its way out. The key is the same for every attempt at it."""

    delivery_key: str
    channel: Channel
    recipient: str
    payload: dict[str, Any]


class Provider(Protocol):
    """Takes messages and says what became of them."""

    def deliver(self, message: Message) -> Outcome:
        """Hand the message over. Failures are outcomes; exceptions are faults of the adapter."""
        ...
