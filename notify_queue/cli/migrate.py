"""Bring the schema up to date: the release step of a deployment."""

from collections.abc import Mapping
from typing import Final

from notify_queue.bootstrap import Container
from notify_queue.cli.startup import settings_or_exit, start_logging, stop
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error

_log = get_logger("migrate")

# By SQLSTATE: what to do about it. Any other failure is most often a wrong address.
_ADVICE: Final[Mapping[str | None, str]] = {
    "55P03": "Another transaction holds a table that is to change: simply run it again.",
}
_USUAL_ADVICE: Final = "Does DATABASE_URL lead there?"


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
        advice = _ADVICE.get(described.get("code"), _USUAL_ADVICE)
        stop(f"The migration failed ({described['name']}{code}). {advice}", 1)
    print(f"The schema is at {version}.")  # noqa: T201 - for the person who runs it
