"""What every command does first: read the settings, set up the logs, look at the schema."""

import sys
from typing import NoReturn

from notify_queue.bootstrap import Container
from notify_queue.observability import events
from notify_queue.observability.logs import configure, get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.schema import OutdatedSchemaError
from notify_queue.settings import EXIT_CODE, InvalidSettingsError, Settings, load_from_process

_log = get_logger("startup")


def settings_or_exit() -> Settings:
    """Read the settings; with a bad one, list everything that is wrong and end with code 78."""
    try:
        return load_from_process()
    except InvalidSettingsError as error:
        stop(str(error), EXIT_CODE)


def stop(text: str, code: int) -> NoReturn:
    """End the process with a word to whoever started it."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - for a person, not for a log
    raise SystemExit(code)


def start_logging(settings: Settings, role: str) -> None:
    """JSON lines, except for a developer at a terminal."""
    readable = settings.node_env == "development" and sys.stdout.isatty()
    configure(settings.log_level, readable=readable, role=role)


def require_schema(container: Container) -> None:
    """End the process if the database is older than the code.

    A database that cannot be reached stops nobody: a platform would restart the process again and
    again, ever more slowly, and the loops and the health check know how to wait.
    """
    try:
        container.require_current_schema()
    except OutdatedSchemaError as error:
        stop(str(error), EXIT_CODE)
    except Exception as error:  # noqa: BLE001 - whatever keeps us from asking
        _log.warn(events.SCHEMA_UNVERIFIED, error=describe_error(error))
