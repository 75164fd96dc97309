"""Add the example jobs that are not there yet: 24, one of each kind.

Run it as often as you like, in any state of the jobs and with workers at work. Prints
{"seeded": n, "existing": m, "statuses": {...}}: how many were added, how many were there, and how
many of them all stand in each status. A dry run adds "missing": how many it would have added.
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
    one_off.run("seed", {"seeded": 0}, partial(_seed, options.read(parser)))


def _seed(arguments: Namespace, run: one_off.OneOff) -> None:
    seed = run.container.seed
    if arguments.dry_run:
        found = seed.look(arguments.limit)
        run.line |= {"existing": found.existing, "missing": found.missing}
        run.line["statuses"] = dict(found.statuses)
    else:
        seeded = seed(arguments.limit)
        run.line |= {"seeded": seeded.seeded, "existing": seeded.existing}
        run.line["statuses"] = dict(seeded.statuses)


if __name__ == "__main__":
    main()
