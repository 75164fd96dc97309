"""Take back the jobs of workers that died or hung, now, instead of at a worker's next pass.

Prints {"requeued": n, "deadLettered": n, "remaining": n}: what was done, and how many expired
claims there still are.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from argparse import Namespace
from functools import partial

from notify_queue.cli import one_off, options
from notify_queue.cli.batches import Batch, Pace
from notify_queue.maintenance.recover import PASS_SIZE


def main() -> None:
    """Read the command line and run."""
    parser = options.parser(__doc__)
    options.add_batch_options(parser)
    parser.add_argument(
        "--once", action="store_true", help=f"one pass: at most {PASS_SIZE} jobs, not all there are"
    )
    counts = {"requeued": 0, "deadLettered": 0}
    one_off.run("recover", counts, partial(_recover, options.read(parser)))


def _recover(arguments: Namespace, run: one_off.OneOff) -> None:
    recover = run.container.recover

    def batch(size: int) -> Batch:
        done = recover(size)
        run.line["requeued"] += done.requeued
        run.line["deadLettered"] += done.dead_lettered
        return Batch(done.requeued + done.dead_lettered, done.full)

    if not arguments.dry_run:
        pace = Pace(PASS_SIZE, arguments.pause, arguments.once)
        run.in_batches(batch, pace, arguments.limit, recover.count)
    run.line["remaining"] = recover.count()


if __name__ == "__main__":
    main()
