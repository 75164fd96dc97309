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
from notify_queue.cli.batches import Pace
from notify_queue.maintenance.recover import PASS_SIZE


def main() -> None:
    """Read the command line and run."""
    parser = options.parser(__doc__)
    options.add_batch_options(parser)
    parser.add_argument(
        "--once", action="store_true", help=f"one pass: at most {PASS_SIZE} jobs, not all there are"
    )
    one_off.run("recover", partial(_recover, options.read(parser)))


def _recover(arguments: Namespace, run: one_off.OneOff) -> dict[str, object]:
    recover = run.container.recover
    requeued = dead_lettered = 0

    def batch(size: int) -> int:
        nonlocal requeued, dead_lettered
        done = recover(size)
        requeued += done.requeued
        dead_lettered += done.dead_lettered
        return done.requeued + done.dead_lettered

    if not arguments.dry_run:
        pace = Pace(PASS_SIZE, arguments.pause, arguments.once)
        run.in_batches(batch, pace, arguments.limit, recover.count)
    return {"requeued": requeued, "deadLettered": dead_lettered, "remaining": recover.count()}


if __name__ == "__main__":
    main()
