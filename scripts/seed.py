"""Add the example jobs that are not there yet: 24, one of each kind.

Run it as often as you like, in any state of the jobs and with workers at work. Prints
{"seeded": n, "existing": m, "statuses": {...}}: how many were added, how many were there, and how
many of them all stand in each status.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from argparse import Namespace
from functools import partial

from notify_queue.cli import one_off, options


def main() -> None:
    """Read the command line and run."""
    parser = options.parser(__doc__)
    parser.add_argument("--limit", type=options.whole, metavar="N", help="only the first N of them")
    one_off.run("seed", partial(_seed, options.read(parser)))


def _seed(arguments: Namespace, run: one_off.OneOff) -> dict[str, object]:
    seed = run.container.seed
    found = seed.look() if arguments.dry_run else seed(arguments.limit)
    return {"seeded": found.seeded, "existing": found.existing, "statuses": dict(found.statuses)}


if __name__ == "__main__":
    main()
