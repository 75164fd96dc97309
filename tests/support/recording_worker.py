"""A worker whose provider keeps a log of its own, as a stranger at the other end would.

Started instead of ``-m notify_queue``. CALL_LOG names the file. Each call is a line when it begins
and a line when it ends: time, delivery key, what happened, process id. Nothing else differs from
the product, but for one payload, ``{"poison": true}``, which kills the process.
"""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

import os
import signal
import time
from pathlib import Path

from notify_queue.__main__ import main
from notify_queue.delivery.mock_provider import MockProvider
from notify_queue.delivery.provider import Message
from notify_queue.domain.outcome import Delivered, Outcome

_deliver = MockProvider.deliver


def _note(message: Message, event: str) -> None:
    """One write, so that lines of several processes never mix and survive a kill."""
    line = f"{time.time()} {message.delivery_key} {event} {os.getpid()}\n"
    log = os.open(Path(os.environ["CALL_LOG"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, line.encode())
    finally:
        os.close(log)


def _deliver_and_note(self: MockProvider, message: Message) -> Outcome:
    _note(message, "begun")
    if message.payload.get("poison"):
        os.kill(os.getpid(), signal.SIGKILL)
    outcome = _deliver(self, message)
    match outcome:
        case Delivered(_, duplicate):
            _note(message, "duplicate" if duplicate else "accepted")
        case _:
            _note(message, "refused")
    return outcome


if __name__ == "__main__":
    # The class is the seam: whoever builds a provider in this process gets the one that notes.
    MockProvider.deliver = _deliver_and_note  # type: ignore[method-assign] # replaced on purpose
    main()
