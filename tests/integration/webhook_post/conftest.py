"""A helper process that posts as a worker does."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.processes import ROOT

# A deadline, and what is generous for a busy machine: none of these would end by themselves.
DEADLINE_MS = 1000
IN_TIME_MS = 5000
# A POST that no deadline ends must not stop the tests that come after it.
STUCK_S = 20


class Poster:
    """The helper process; one that is stuck is replaced by another."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = {**os.environ, **env}
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.poster"],
            cwd=ROOT,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def post(self, url: str, **order: Any) -> dict[str, Any]:
        """Post once and return what came of it."""
        told = {"url": url, "timeout_ms": DEADLINE_MS, "allow_private": True, **order}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        stuck = threading.Timer(STUCK_S, self._process.kill)
        stuck.start()
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        stuck.cancel()
        if not line:
            self.end()
            self._process = self._start()
            raise AssertionError(f"no end within {STUCK_S} s, or the process died")
        result: dict[str, Any] = json.loads(line)
        return result

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


StartPoster = Callable[..., Poster]


@pytest.fixture(scope="module")
def start_poster() -> Iterator[StartPoster]:
    """Starts helper processes with variables of their environment, and ends them."""
    started: list[Poster] = []

    def start(**env: str) -> Poster:
        started.append(Poster(env))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture(scope="module")
def poster(start_poster: StartPoster) -> Poster:
    """One process for all."""
    return start_poster()
