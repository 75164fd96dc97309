"""Put jobs that ended badly back to work, oldest first, each once, until none remain.

Prints {"redriven": n, "remaining": n}: how many were put back, and how many there still are or
have ended badly again.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from argparse import Namespace
from dataclasses import replace
from functools import partial

from notify_queue.cli import one_off, options
from notify_queue.cli.batches import pace
from notify_queue.domain.error_text import clean_error
from notify_queue.domain.lifecycle import REDRIVABLE, Status
from notify_queue.domain.page import place_of
from notify_queue.domain.redrive import Selection
from notify_queue.notifications.redrive import Redriven, report_redrive


def main() -> None:
    """Read the command line and run."""
    parser = options.parser(__doc__)
    options.add_batch_options(parser)
    add = parser.add_argument
    statuses = sorted(status.value for status in REDRIVABLE)
    add("--status", choices=statuses, default="DEAD_LETTERED", help="default: %(default)s")
    add("--recipient", type=options.text, help="only this one's jobs")
    add("--since", type=options.instant, metavar="INSTANT", help="only what ended then or later")
    add("--rate", type=options.whole, metavar="N", help="at most N jobs in any second")
    add("--reason", default="", metavar="TEXT", help="for the log")
    one_off.run("redrive", partial(_redrive, options.read(parser)))


def _redrive(arguments: Namespace, run: one_off.OneOff) -> dict[str, object]:
    redrive = run.container.redrive_many
    selection = Selection(Status(arguments.status), arguments.recipient, arguments.since)
    ahead = selection

    def batch(size: int) -> int:
        nonlocal ahead
        jobs = redrive.batch(ahead, size)
        # A job that has ended badly again by then stands behind, and is left alone.
        ahead = replace(ahead, after=place_of(jobs[-1])) if jobs else ahead
        return len(jobs)

    if arguments.dry_run:
        return {"redriven": 0, "remaining": redrive.remaining(selection)}
    count = partial(redrive.remaining, selection)
    done = run.in_batches(batch, pace(arguments.pause, arguments.rate), arguments.limit, count)
    redriven = Redriven(done, count())
    reason = clean_error(arguments.reason, arguments.recipient or "")[:200]
    report_redrive(selection, redriven, reason or None)
    return {"redriven": done, "remaining": redriven.remaining}


if __name__ == "__main__":
    main()
