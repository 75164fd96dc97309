"""A worker whose provider accepts everything at once and keeps no record: no cost but our own.

Started instead of ``-m notify_queue``.
"""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from notify_queue.__main__ import main
from notify_queue.delivery.mock_provider import MockProvider
from notify_queue.delivery.provider import Message
from notify_queue.domain.outcome import Delivered, Outcome


def _accept(self: MockProvider, message: Message) -> Outcome:  # noqa: ARG001 - as it is called
    return Delivered(message.delivery_key)


if __name__ == "__main__":
    # The class is the seam: whoever builds a provider in this process gets this one.
    MockProvider.deliver = _accept  # type: ignore[method-assign] # replaced on purpose
    main()
