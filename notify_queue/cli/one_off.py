"""A run that does one thing and ends: what the scripts have in common.

Standard output is one JSON line, however the run ends; everything else goes to standard error. A
signal ends the run after the batch in progress.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO, cast

import gevent
from gevent.event import Event
from tqdm import tqdm

from notify_queue.bootstrap import Container
from notify_queue.cli.batches import Batch, Pace, in_batches
from notify_queue.cli.startup import settings_or_exit, stop
from notify_queue.observability.logs import configure
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.schema import OutdatedSchemaError
from notify_queue.settings import EXIT_CODE, Settings

_ROOT: Final = Path(__file__).parents[2]
# What a shell reports of a command that a signal ended.
_SIGNALLED: Final = 128


class OneOff:
    """One run of a script called ``name``.

    ``line`` is what it will say on standard output. Whatever has been counted there by the time the
    run fails is said too, so each job is counted as soon as it is done.
    """

    def __init__(self, settings: Settings, name: str, line: dict[str, Any]) -> None:
        """Listen for signals and connect to nothing yet."""
        self.container = Container(settings, name)
        self.line = line
        self.stopped_by: int | None = None
        self._stop = Event()
        self._shown = sys.stderr.isatty()
        configure(
            settings.log_level,
            readable=settings.node_env == "development" and self._shown,
            role=name,
            stream=cast("TextIO", _AboveTheBar()) if self._shown else sys.stderr,
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            gevent.signal_handler(number, self._on_signal, number)

    def in_batches(
        self,
        batch: Callable[[int], Batch],
        pace: Pace,
        limit: int | None,
        count: Callable[[], int],
    ) -> None:
        """Do the work as :func:`notify_queue.cli.batches.in_batches` does, stopped by a signal.

        On a terminal a bar shows how far of ``count()`` it is.
        """
        if not self._shown:
            in_batches(batch, pace, limit, self._stop.wait)
            return
        total = min(count(), limit or sys.maxsize)
        with tqdm(total=total, file=sys.stderr, unit=" done", miniters=1) as bar:

            def counted(size: int) -> Batch:
                got = batch(size)
                bar.update(got.done)
                return got

            in_batches(counted, pace, limit, self._stop.wait)

    def _on_signal(self, number: int) -> None:
        self.stopped_by = number
        self._stop.set()


class _AboveTheBar:
    """Standard error, for whole lines: the bar makes room for each and is drawn again below it."""

    def write(self, text: str) -> None:
        """Write a line with its end."""
        tqdm.write(text, file=sys.stderr, end="")

    def flush(self) -> None:
        """Show what was written."""
        sys.stderr.flush()


def run(name: str, line: dict[str, Any], work: Callable[[OneOff], None]) -> None:
    """Do ``work`` in the project's folder, print the line, then end the process.

    ``line`` holds the counts to begin with, all zero: what the run does is added to them.

    Exit codes: 0; 1 when the run failed, and the line then has ``failed``; 128 and the number of
    the signal that stopped it. Without a line, since nothing was begun: 78 for bad settings or an
    old schema.
    """
    os.chdir(_ROOT)
    one_off = OneOff(settings_or_exit(), name, line)
    failure = None
    try:
        one_off.container.require_current_schema()
        work(one_off)
    except OutdatedSchemaError as error:
        stop(str(error), EXIT_CODE)
    except Exception as error:  # noqa: BLE001 - said by its class: a driver's words may quote values
        failure = _told(error, begun=any(line.values()))
        line["failed"] = True
    if one_off.stopped_by is not None:
        line["interrupted"] = True
    print(json.dumps(line), flush=True)  # noqa: T201 - the one line of standard output
    if failure is not None:
        stop(failure, 1)
    if one_off.stopped_by is not None:
        raise SystemExit(_SIGNALLED + one_off.stopped_by)


def _told(error: Exception, *, begun: bool) -> str:
    described = describe_error(error)
    code = f", SQLSTATE {described['code']}" if described.get("code") else ""
    at = f", {described['stack'][-1]}" if described.get("stack") else ""
    advice = (
        "What was done stays done; start again for the rest."
        if begun
        else "Does DATABASE_URL lead to the database?"
    )
    return f"The run failed ({described['name']}{code}{at}). {advice}"
