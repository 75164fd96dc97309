"""A run that does one thing and ends: what the scripts have in common.

Standard output is one JSON line; everything else goes to standard error. A signal ends the run
after the batch in progress, and the line is still written.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import gevent
from gevent.event import Event
from tqdm import tqdm

from notify_queue.bootstrap import Container
from notify_queue.cli.batches import Pace, in_batches
from notify_queue.cli.startup import settings_or_exit, stop
from notify_queue.observability.logs import configure
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.schema import OutdatedSchemaError
from notify_queue.settings import EXIT_CODE, Settings

_ROOT: Final = Path(__file__).parents[2]
# What a shell reports of a command that a signal ended.
_SIGNALLED: Final = 128


class OneOff:
    """One run of a script called ``name``."""

    def __init__(self, settings: Settings, name: str) -> None:
        """Listen for signals and connect to nothing yet."""
        self.container = Container(settings, name)
        self.stopped_by: int | None = None
        self._settings = settings
        self._name = name
        self._stop = Event()
        self._log()
        for number in (signal.SIGINT, signal.SIGTERM):
            gevent.signal_handler(number, self._on_signal, number)

    def in_batches(
        self,
        batch: Callable[[int], int],
        pace: Pace,
        limit: int | None,
        count: Callable[[], int],
    ) -> int:
        """Do the work as :func:`notify_queue.cli.batches.in_batches` does, stopped by a signal.

        On a terminal a bar shows how far of ``count()`` it is; only errors are logged meanwhile,
        since a line would tear it.
        """
        shown = sys.stderr.isatty()
        if not shown:
            return in_batches(batch, pace, limit, self._wait)
        total = min(count(), limit or sys.maxsize)
        self._log(quiet=True)
        with tqdm(total=total, file=sys.stderr, unit=" jobs", miniters=1) as bar:

            def counted(size: int) -> int:
                got = batch(size)
                bar.update(got)
                return got

            done = in_batches(counted, pace, limit, self._wait)
        self._log()
        return done

    def _wait(self, pause_s: float) -> bool:
        return self._stop.wait(pause_s)

    def _on_signal(self, number: int) -> None:
        self.stopped_by = number
        self._stop.set()

    def _log(self, *, quiet: bool = False) -> None:
        level = self._settings.log_level
        if quiet and level not in {"fatal", "silent"}:
            level = "error"
        readable = self._settings.node_env == "development" and sys.stderr.isatty()
        configure(level, readable=readable, role=self._name, stream=sys.stderr)


def run(name: str, work: Callable[[OneOff], Mapping[str, object]]) -> None:
    """Do ``work`` in the project's folder and print the line it returns, then end the process.

    Exit codes: 0; 1 when the database could not be used; 78 for bad settings or an old schema; 128
    and the number of the signal that stopped it.
    """
    os.chdir(_ROOT)
    one_off = OneOff(settings_or_exit(), name)
    try:
        one_off.container.require_current_schema()
        line = dict(work(one_off))
    except OutdatedSchemaError as error:
        stop(str(error), EXIT_CODE)
    except Exception as error:  # noqa: BLE001 - said by its class: a driver's words may quote values
        stop(_told(error), 1)
    if one_off.stopped_by is not None:
        line["interrupted"] = True
    print(json.dumps(line), flush=True)  # noqa: T201 - the one line of standard output
    if one_off.stopped_by is not None:
        raise SystemExit(_SIGNALLED + one_off.stopped_by)


def _told(error: Exception) -> str:
    described = describe_error(error)
    code = f", SQLSTATE {described['code']}" if described.get("code") else ""
    at = f", {described['stack'][-1]}" if described.get("stack") else ""
    return (
        f"The run failed ({described['name']}{code}{at}). Does DATABASE_URL lead to the database?"
        " What was done stays done; start again for the rest."
    )
