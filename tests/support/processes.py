"""The product's own processes, started the way the Procfile starts them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from notify_queue.settings.values import declarations
from tests.support.ports import free_port
from tests.support.waiting import until

# A process that patches too late must not start. By the warning's text: the interpreter reads the
# option before it could import gevent for the class, and would ignore it.
_PATCH_FIRST = ("-W", "error:Monkey-patching")
ROOT = Path(__file__).resolve().parents[2]


class Process:
    """One running process of the product, its port and its log."""

    def __init__(
        self, program: str, command: str, port: int, log: Path, env: dict[str, str]
    ) -> None:
        self.port = port
        self._log = log
        self._errors = log.with_suffix(".err")
        with log.open("wb") as out, self._errors.open("wb") as err:
            self.popen = subprocess.Popen(
                [sys.executable, *_PATCH_FIRST, "-m", program, command],
                cwd=ROOT,
                env=env,
                stdout=out,
                stderr=err,
            )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def wait_until_healthy(self) -> None:
        """Wait until it answers /health with 200."""
        until(self._healthy, f"{self.url}/health is 200; it said {self.errors()[-2000:]}")

    def _healthy(self) -> bool:
        if self.popen.poll() is not None:
            raise AssertionError(f"ended with {self.popen.returncode}: {self.errors()[-2000:]}")
        try:
            return requests.get(f"{self.url}/health", timeout=5).ok
        except requests.ConnectionError:
            return False

    def stop(self, number: int = signal.SIGTERM, deadline_s: float = 40) -> int:
        """Signal it, wait for its end and return its exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        return self.popen.wait(deadline_s)

    def text(self) -> str:
        """Everything it wrote to standard output."""
        return self._log.read_text()

    def errors(self) -> str:
        """Everything it wrote to standard error."""
        return self._errors.read_text()

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """Its log records, or those of one event."""
        complete = [line for line in self.text().splitlines(keepends=True) if line.endswith("\n")]
        records = [json.loads(line) for line in complete]
        return [record for record in records if event in {None, record["msg"]}]


class Processes:
    """Starts processes on one database; ends whatever still runs when left."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self._database_url = database_url
        self._folder = folder
        self._started: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._started:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
                process.popen.kill()
                process.popen.wait(10)

    def __iter__(self) -> Iterator[Process]:
        return iter(self._started)

    def start(self, command: str, **settings: str | float) -> Process:
        """Start ``python -m notify_queue <command>`` and do not wait for anything."""
        return self.start_program("notify_queue", command, settings)

    def start_program(
        self, program: str, command: str, settings: Mapping[str, str | float]
    ) -> Process:
        """Start ``python -m <program> <command>``, which is the product with something added."""
        port = free_port()
        env = {
            **os.environ,
            # Empty counts as unset and wins over a developer's .env.
            **dict.fromkeys(declarations(), ""),
            "DATABASE_URL": self._database_url,
            "NODE_ENV": "test",
            "PORT": str(port),
            "PYTHONUNBUFFERED": "1",
            **{name: str(value) for name, value in settings.items()},
        }
        log = self._folder / f"{len(self._started)}-{command}.log"
        process = Process(program, command, port, log, env)
        self._started.append(process)
        return process

    def running(self, command: str, **settings: str | float) -> Process:
        """Start a process and wait until it is healthy."""
        process = self.start(command, **settings)
        process.wait_until_healthy()
        return process
