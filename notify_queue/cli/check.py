"""Say which settings are in force."""

from notify_queue.cli.startup import settings_or_exit
from notify_queue.settings import describe


def run() -> None:
    """Print every setting with secrets masked, or every problem."""
    print(describe(settings_or_exit()))  # noqa: T201 - for the person who runs it
