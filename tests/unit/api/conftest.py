"""An API over an in-memory queue, and what it logs."""

import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from flask.testing import FlaskClient

from notify_queue.observability.logs import configure
from tests.unit.api.in_memory import InMemoryQueue
from tests.unit.api.mock_receiver import InMemoryReceipts, use_cases


@pytest.fixture
def queue() -> InMemoryQueue:
    """Return an empty queue."""
    return InMemoryQueue()


@pytest.fixture
def client(queue: InMemoryQueue) -> FlaskClient:
    """Return a client of an API process."""
    return queue.app().test_client()


@pytest.fixture
def worker_client(queue: InMemoryQueue) -> FlaskClient:
    """Return a client of a worker process."""
    return queue.app("worker").test_client()


@pytest.fixture
def log_lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Return a function that reads the log lines written so far."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = StringIO()
    configure("debug", readable=False, role="api", stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def receipts() -> InMemoryReceipts:
    """Return an empty store of receipts."""
    return InMemoryReceipts()


@pytest.fixture
def receiver(queue: InMemoryQueue, receipts: InMemoryReceipts) -> FlaskClient:
    """Return a client of a mock receiver that wants no signature."""
    return queue.app(mock_receiver=use_cases(receipts)).test_client()
