"""A worker that one webhook kills: the event of the job whose id DEADLY names.

Started instead of ``-m notify_queue``. It dies by SIGKILL when the POST begins, as a fault in
native code would end it.
"""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

import os
import signal
from collections.abc import Mapping

from notify_queue.__main__ import main
from notify_queue.delivery.webhook_post import WebhookPost
from notify_queue.domain.webhook_event import Answer

_post = WebhookPost.__call__


def _die_of_one(self: WebhookPost, body: bytes, headers: Mapping[str, str]) -> Answer:
    if os.environ["DEADLY"].encode() in body:
        os.kill(os.getpid(), signal.SIGKILL)
    return _post(self, body, headers)


if __name__ == "__main__":
    # The class is the seam: whoever posts in this process posts like this.
    WebhookPost.__call__ = _die_of_one  # type: ignore[method-assign] # replaced on purpose
    main()
