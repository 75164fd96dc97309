"""The processes of the product that the runner started."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from notify_queue.local.processes import command_line
from notify_queue.local.tether import tethered

_STOP_SECONDS = 30
_POLL_SECONDS = 0.1

# What a process of ours looks like from outside; gunicorn is what the API becomes.
_OURS = ("-m notify_queue", "gunicorn")


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that is over, and its exit status (negative: the signal that ended it)."""

    name: str
    status: int


class Children:
    """Children in sessions of their own, so that a Ctrl-C reaches them through us and once."""

    def __init__(self, project: Path) -> None:
        """All run in the project's folder."""
        self._project = project
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> list[int]:
        """The process ids of all that were started."""
        return [child.pid for child in self._running.values()]

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: IO[bytes] | None = None,
    ) -> None:
        """Start Python with ``arguments``; the process ends with us, whatever ends us.

        What it says goes to ``output`` instead of the terminal if that is given.
        """
        self._running[name] = subprocess.Popen(  # noqa: S603 - our own program
            tethered([sys.executable, *arguments], signal.SIGTERM),
            cwd=self._project,
            env=environment,
            stdout=output,
            start_new_session=True,
        )

    def first_ended(self) -> Ended | None:
        """A child that is over, if any, and forget it."""
        for name, child in self._running.items():
            status = child.poll()
            if status is not None:
                del self._running[name]
                return Ended(name, status)
        return None

    def stop(self, hurry: Callable[[], bool]) -> None:
        """Ask all to end, wait, and kill what is left at the deadline or once ``hurry`` says so."""
        for child in self._running.values():
            _signal(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while self._alive() and time.monotonic() < deadline and not hurry():
            time.sleep(_POLL_SECONDS)
        for child in self._alive():
            # The whole session: a child that cannot end takes its own children along.
            _signal_group(child.pid, signal.SIGKILL)
            child.wait()

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        return [child for child in self._running.values() if child.poll() is None]


def stop_leftovers(pids: Iterable[int], hurry: Callable[[], bool]) -> int:
    """End what an earlier runner left alive when it was killed; strangers are left in peace.

    Returns:
        How many there were.
    """
    left = [pid for pid in pids if _is_ours(pid)]
    for pid in left:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while any(map(_is_ours, left)) and time.monotonic() < deadline and not hurry():
        time.sleep(_POLL_SECONDS)
    for pid in filter(_is_ours, left):
        _signal_group(pid, signal.SIGKILL)
    return len(left)


def _is_ours(pid: int) -> bool:
    command = command_line(pid)
    return any(mark in command for mark in _OURS)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
