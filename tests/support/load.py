"""Requests as callers make them: one, or many at the same moment."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from uuid import uuid4

import requests

from tests.support.processes import Process

T = TypeVar("T")

# Longer than any deadline of the product: what never answers is a fault, not a slow test.
_ANSWER_WITHIN_S = 15


def a_body(**changes: Any) -> dict[str, Any]:
    """A notification due in a second, with a key of its own; ``sendAt`` replaces the delay."""
    body = {
        "recipient": "user@example.com",
        "channel": "EMAIL",
        "payload": {"subject": "hello"},
        "delaySeconds": 1,
        "priority": "NORMAL",
        "idempotencyKey": str(uuid4()),
        **changes,
    }
    if "sendAt" in changes:
        del body["delaySeconds"]
    return body


def post(api: Process, body: dict[str, Any], **headers: str) -> requests.Response:
    """Schedule over HTTP, on a connection of its own.

    It ends with the answer: an API that stops waits for connections that are kept.
    """
    return requests.post(
        f"{api.url}/notifications",
        json=body,
        headers={"Connection": "close", **headers},
        timeout=_ANSWER_WITHIN_S,
    )


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make every call from a thread of its own, none before all threads stand ready."""
    ready = threading.Barrier(len(calls))

    def call(one: Callable[[], T]) -> T:
        ready.wait(10)
        return one()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(call, calls))


def in_background(call: Callable[[], T]) -> Future[T]:
    """Start a call and go on; ``result()`` waits for it."""
    threads = ThreadPoolExecutor(1)
    started = threads.submit(call)
    threads.shutdown(wait=False)
    return started
