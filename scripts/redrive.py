"""Put jobs that ended badly back to work, oldest first, each once, until none remain.

Prints {"redriven": n, "remaining": n}: how many were put back, and how many there still are or
have ended badly again. With --webhooks it does the same for webhook events that were given up,
and --since means when that was.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from argparse import Namespace
from dataclasses import replace
from functools import partial

from notify_queue.cli import one_off, options
from notify_queue.cli.batches import Batch, Sweeps, pace
from notify_queue.domain.error_text import clean_error
from notify_queue.domain.lifecycle import REDRIVABLE, Status
from notify_queue.domain.page import Place, place_of
from notify_queue.domain.redrive import GivenUpEvents, Selection
from notify_queue.notifications.redrive import Redriven, report_redrive
from notify_queue.webhooks.revive import report_revival


def main() -> None:
    """Read the command line and run."""
    parser = options.parser(__doc__)
    options.add_batch_options(parser)
    add = parser.add_argument
    statuses = sorted(status.value for status in REDRIVABLE)
    add("--webhooks", action="store_true", help="webhook events that were given up, not jobs")
    add("--status", choices=statuses, help="default: DEAD_LETTERED")
    add("--recipient", type=options.text, help="only this one's jobs")
    add("--since", type=options.instant, metavar="INSTANT", help="only what ended then or later")
    add("--rate", type=options.whole, metavar="N", help="at most N in any second")
    add("--reason", default="", metavar="TEXT", help="for the log, with every job")
    arguments = options.read(parser)
    if arguments.webhooks and (arguments.status or arguments.recipient):
        options.refuse(parser, "--webhooks: not together with --status or --recipient")
    work = _revive if arguments.webhooks else _redrive
    one_off.run("redrive", {"redriven": 0}, partial(work, arguments))


def _redrive(arguments: Namespace, run: one_off.OneOff) -> None:
    redrive = run.container.redrive_many
    status = Status(arguments.status or Status.DEAD_LETTERED)
    selection = Selection(status, arguments.recipient, arguments.since)
    reason = _reason(arguments)
    remaining = partial(redrive.remaining, selection)
    if arguments.dry_run:
        run.line["remaining"] = remaining()
        return
    each_once = replace(selection, ended_before=redrive.now())

    def take(after: Place | None, size: int) -> list[Place]:
        jobs = redrive.batch(replace(each_once, after=after), size, reason)
        run.line["redriven"] += len(jobs)
        return [place_of(job) for job in jobs]

    in_pace = pace(arguments.pause, arguments.rate)
    run.in_batches(Sweeps(take).batch, in_pace, arguments.limit, remaining)
    run.line["remaining"] = remaining()
    report_redrive(selection, Redriven(run.line["redriven"], run.line["remaining"]), reason)


def _revive(arguments: Namespace, run: one_off.OneOff) -> None:
    revive = run.container.revive_events
    selection = GivenUpEvents(arguments.since)
    remaining = partial(revive.remaining, selection)
    if arguments.dry_run:
        run.line["remaining"] = remaining()
        return
    each_once = replace(selection, before=revive.now())

    def batch(size: int) -> Batch:
        revived = revive.batch(each_once, size)
        run.line["redriven"] += revived
        return Batch(revived, revived == size)

    in_pace = pace(arguments.pause, arguments.rate)
    run.in_batches(batch, in_pace, arguments.limit, remaining)
    run.line["remaining"] = remaining()
    report_revival(run.line["redriven"], run.line["remaining"], _reason(arguments))


def _reason(arguments: Namespace) -> str | None:
    return clean_error(arguments.reason, arguments.recipient or "")[:200] or None


if __name__ == "__main__":
    main()
