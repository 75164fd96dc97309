"""POSTs as a worker makes them, and nothing else: ``python -m benchmarks.bare_posts URL COUNT``.

No database, no signature: what one process could send at most. Prints the POSTs a second.
"""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

import sys
import time
from datetime import UTC, datetime

from gevent.pool import Pool

from notify_queue.delivery.webhook_post import WebhookPost

AT_ONCE = 50
BODY = b"x" * 190


def main() -> None:
    """Post and print."""
    url, count = sys.argv[1], int(sys.argv[2])
    post = WebhookPost(
        url,
        most=AT_ONCE,
        timeout_ms=5000,
        allow_private=True,
        wall_clock=lambda: datetime.fromtimestamp(time.time(), UTC),
    )
    began = time.monotonic()
    for _ in Pool(AT_ONCE).imap_unordered(lambda _: post(BODY, {}), range(count)):
        pass
    print(count / (time.monotonic() - began))


if __name__ == "__main__":
    main()
