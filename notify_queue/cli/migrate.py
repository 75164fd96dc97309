"""Bring the schema up to date: the release step of a deployment."""

from notify_queue.bootstrap import Container
from notify_queue.cli.startup import settings_or_exit, start_logging


def run() -> None:
    """Migrate and say which version was reached. Safe to run several times at once."""
    settings = settings_or_exit()
    start_logging(settings, "migrate")
    version = Container(settings, "migrate").migrate()
    print(f"The schema is at {version}.")  # noqa: T201 - for the person who runs it
