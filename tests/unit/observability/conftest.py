"""A place for log lines to go to, and the process's own logging put back afterwards."""

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from notify_queue.observability.logs import configure

LIBRARIES = ("gunicorn.error", "gunicorn.access")


class Lines:
    """What was written so far."""

    def __init__(self) -> None:
        self.stream = StringIO()

    def configure(self, level: str = "info", *, readable: bool = False) -> None:
        configure(level, readable=readable, role="worker", stream=self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def only(self) -> dict[str, Any]:
        (record,) = self.records
        return record


@pytest.fixture
def lines() -> Iterator[Lines]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = Lines()
    lines.configure()
    yield lines
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in LIBRARIES:
        logging.getLogger(name).handlers.clear()
