"""``python -m notify_queue [api|worker|all|migrate|check]``; without a word APP_ROLE decides."""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

import argparse

from notify_queue.cli import check, migrate, web, worker
from notify_queue.cli.startup import settings_or_exit

_COMMANDS = ("api", "worker", "all", "migrate", "check")


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="notify-queue", description=__doc__)
    parser.add_argument("command", nargs="?", choices=_COMMANDS, help="what this process does")
    command = parser.parse_args().command or settings_or_exit().app_role
    match command:
        case "migrate":
            migrate.run()
        case "check":
            check.run()
        case "api":
            web.run()
        case _:
            worker.run(command)


if __name__ == "__main__":
    main()
