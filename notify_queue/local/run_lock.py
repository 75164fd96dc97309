"""One runner a project, and what a killed one left behind."""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from notify_queue.local.errors import LocalError


class RunLock:
    """A lock that lasts as long as this process, in a file that says who holds it.

    The system gives the lock up however the process ends. What the file says stays, so the next
    run finds the children of one that was killed.
    """

    def __init__(self, path: Path) -> None:
        """The lock is taken on entering."""
        self._file = path.open("a+", encoding="utf-8")

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            LocalError: when another runner holds it.
        """
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = self._read()
            self._file.close()
            raise LocalError(
                f"Notify Queue is running already: process {holder.get('pid', 'unknown')}, "
                f"{holder.get('address', 'address not known yet')}"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock up; nothing is left behind."""
        self._file.truncate(0)
        self._file.close()

    def leftovers(self) -> list[int]:
        """The children of a run that did not end by itself. They may be over, or be others now."""
        children = self._read().get("children")
        return (
            [pid for pid in children if isinstance(pid, int)] if isinstance(children, list) else []
        )

    def record(self, address: str, children: Sequence[int]) -> None:
        """Note who runs, where, and with which children."""
        state = {"pid": os.getpid(), "address": address, "children": list(children)}
        self._file.truncate(0)
        self._file.write(json.dumps(state))
        self._file.flush()

    def _read(self) -> dict[str, object]:
        self._file.seek(0)
        try:
            state = json.load(self._file)
        except ValueError:
            return {}
        return state if isinstance(state, dict) else {}
