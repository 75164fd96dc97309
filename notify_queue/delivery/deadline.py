"""A provider call always ends, and always in an outcome."""

import gevent

from notify_queue.delivery.provider import Message, Provider
from notify_queue.domain.outcome import Failed, Outcome
from notify_queue.persistence.unit_of_work import refuse_open_unit_of_work


def deliver_within(provider: Provider, message: Message, timeout_ms: int) -> Outcome:
    """Call the provider; a timeout or anything thrown becomes a retryable failure.

    What an exception says is not passed on, only its class: it may quote the message.

    Raises:
        OpenUnitOfWorkError: the caller holds a transaction open.
    """
    refuse_open_unit_of_work("A provider call")
    deadline = gevent.Timeout(timeout_ms / 1000)
    try:
        with deadline:
            return provider.deliver(message)
    except (Exception, gevent.Timeout, SystemExit) as error:  # noqa: BLE001 - an adapter's fault must not end the worker
        if error is deadline:
            return Failed(f"Provider timed out after {timeout_ms}ms")
        return Failed(f"Provider call failed: {type(error).__name__}")
