"""A process that posts webhooks as a worker does: its sockets are green, and its deadlines strike.

Started as ``python -m tests.support.poster``. Each line of standard input is a JSON object, each
line of standard output says what came of it. ``names`` gives hosts their addresses: a list for each
look-up of the name, the last one for all that follow. Instead of an address there may be the name
of the error that its resolver meets.
"""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

import json
import socket
import sys
import time
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import gevent

from notify_queue.delivery import guarded
from notify_queue.delivery.webhook_post import WebhookPost
from notify_queue.domain.webhook_event import Answered

_resolve = socket.getaddrinfo
_posts: dict[str, WebhookPost] = {}


class Held:
    """How long at most the other greenlets of this process had to wait, in ms."""

    def __init__(self) -> None:
        self.ms = 0
        self._greenlet = gevent.spawn(self._tick)

    def _tick(self) -> None:
        while True:
            began = time.monotonic()
            gevent.sleep(0.01)
            self.ms = max(self.ms, round((time.monotonic() - began) * 1000))

    def stop(self) -> int:
        """End looking and say."""
        self._greenlet.kill()
        return self.ms


def _look_up(names: dict[str, list[list[str]]], host: str, port: Any, options: Any) -> list[Any]:
    answers = names.get(host, [[host]])
    addresses = answers.pop(0) if len(answers) > 1 else answers[0]
    for address in addresses:
        if address.startswith("EAI_"):
            raise socket.gaierror(getattr(socket, address), "as the test wants it")
    return [found for address in addresses for found in _resolve(address, port, **options)]


def _post(order: dict[str, Any]) -> dict[str, Any]:
    names = order.get("names", {})
    socket.getaddrinfo = lambda host, port, **options: _look_up(names, host, port, options)
    guarded._IDLE_S = order.get("idle_s", 1.0)  # type: ignore[misc] # shortened for a test
    guarded._AGE_S = order.get("age_s", 60.0)  # type: ignore[misc] # the same
    key = json.dumps([order["url"], order["timeout_ms"], order["allow_private"]])
    if key not in _posts:
        _posts[key] = WebhookPost(
            order["url"],
            # A connection that is not given back is missed by the next POST.
            most=1,
            timeout_ms=order["timeout_ms"],
            allow_private=order["allow_private"],
            wall_clock=lambda: datetime.fromtimestamp(time.time(), UTC),
        )
    gevent.sleep(order.get("pause_s", 0))
    # Not the size of the process: that begins as what the process which started this one needed.
    tracemalloc.start()
    held, began = Held(), time.monotonic()
    gevent.sleep(0)
    answer = _posts[key](order.get("body", "{}").encode(), {"x-webhook-event-id": "e"})
    gevent.sleep(0.02)
    told: dict[str, Any] = {
        "ms": round((time.monotonic() - began) * 1000),
        "held_ms": held.stop(),
        "memory_kb": tracemalloc.get_traced_memory()[1] // 1024,
    }
    tracemalloc.stop()
    pool = _posts[key]._pool.pool
    kept = None if pool is None else pool.queue[0]
    told["kept_waits_s"] = kept.sock.gettimeout() if kept and kept.sock else "none is kept"
    if isinstance(answer, Answered):
        return {**told, "status": answer.status, "wait_s": answer.wait_s, "error": None}
    return {**told, "status": None, "wait_s": 0, "error": answer.error}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_post(json.loads(line))), flush=True)  # noqa: T201 - its answers
