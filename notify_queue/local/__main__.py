"""Run Notify Queue on this machine: ``python -m notify_queue.local``."""

import argparse
import sys
from pathlib import Path

from notify_queue.local.console import say
from notify_queue.local.errors import LocalError
from notify_queue.local.runner import Options, Runner

_PROJECT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Read the command line and run. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="./scripts/dev",
        description=(
            "Run Notify Queue on this machine: a database of its own (unless DATABASE_URL names "
            "one), the schema, example jobs, the API and workers. Ctrl-C stops it all and keeps "
            "the data."
        ),
    )
    parser.add_argument(
        "--workers", type=_count, default=2, metavar="N", help="worker processes (default: 2)"
    )
    parser.add_argument(
        "--port", type=int, help="the API's port (default: PORT, or 3000 or the next free one)"
    )
    arguments = parser.parse_args()
    try:
        return Runner(_PROJECT, Options(arguments.workers, arguments.port)).run()
    except (LocalError, OSError) as error:
        say(str(error))
        return 1


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


if __name__ == "__main__":
    sys.exit(main())
