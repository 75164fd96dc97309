"""Bring the schema up to date: the release step of a deployment."""

from notify_queue.bootstrap import Container
from notify_queue.cli.startup import settings_or_exit, start_logging, stop
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error

_log = get_logger("migrate")


def run() -> None:
    """Migrate and say which version was reached. Safe to run several times at once."""
    settings = settings_or_exit()
    start_logging(settings, "migrate")
    try:
        version = Container(settings, "migrate").migrate()
    except Exception as error:  # noqa: BLE001 - said by its class: a driver's words may quote settings
        described = describe_error(error)
        code = f", SQLSTATE {described['code']}" if described.get("code") else ""
        _log.error(events.MIGRATE_FAILED, error=described)
        stop(f"The migration failed ({described['name']}{code}). Does DATABASE_URL lead there?", 1)
    print(f"The schema is at {version}.")  # noqa: T201 - for the person who runs it
