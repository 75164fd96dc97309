"""The allowlist at work: what may be written of an event, and what of a library's record."""

import logging
from typing import Any, Final
from uuid import UUID

from structlog.typing import EventDict, WrappedLogger

from notify_queue.observability.events import CONTEXT_FIELDS, FIELDS, OBJECTS
from notify_queue.observability.redaction import describe_error

# Longest text in a line. Stored error text is at most 500; a path is the longest one left.
MAX_TEXT: Final = 1000

WITHHELD: Final = "(withheld)"

# Libraries whose records speak of themselves and not of requests or rows.
_TRUSTED: Final = ("gunicorn.error", "alembic")


def keep_allowed(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Drop every field, and every kind of value, that is not allowed for the event."""
    event = event_dict.pop("event")
    kept: dict[str, Any] = {"context": event_dict.pop("context"), "event": event}
    allowed = FIELDS.get(event, frozenset()) | CONTEXT_FIELDS
    for name, value in _with_stack(event_dict).items():
        if name in allowed and (clean := _clean(name, value)) is not None:
            kept[name] = clean
    if "msg" in kept:
        kept["event"] = kept.pop("msg")
    return kept


def _with_stack(fields: EventDict) -> EventDict:
    """Move the stack of a described error beside it: an error is then the same small object."""
    error = fields.get("error")
    if not isinstance(error, dict) or "stack" not in error:
        return fields
    bare = {key: value for key, value in error.items() if key != "stack"}
    return {**fields, "error": bare, "stack": error["stack"]}


def _clean(name: str, value: object) -> Any:
    """Return the value as it may be written, or None. An unknown type could print anything."""
    match value:
        case bool() | int() | float():
            return value
        case str():
            return value[:MAX_TEXT]
        case UUID():
            return str(value)
        case dict() if name in OBJECTS:
            return {key: _clean(key, item) for key, item in value.items() if key in OBJECTS[name]}
        case list() if name in {"stack", "causes"}:
            return [_clean(name, item) for item in value]
        case _:
            return None


def describe_foreign(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Describe a library's own record: its text only where that is known to be harmless."""
    record: logging.LogRecord = event_dict["_record"]
    described: EventDict = {
        "_record": record,
        "_from_structlog": False,
        "context": record.name,
        "event": _text(record, event_dict["positional_args"])[:MAX_TEXT],
    }
    _, error, _ = event_dict.get("exc_info") or (None, None, None)
    if error is not None:
        described["error"] = describe_error(error)
        return _with_stack(described)
    return described


def is_trusted(logger_name: str) -> bool:
    """Whether the library behind this logger may speak in its own words."""
    return any(logger_name == name or logger_name.startswith(f"{name}.") for name in _TRUSTED)


def _text(record: logging.LogRecord, arguments: Any) -> str:
    if not is_trusted(record.name) or not isinstance(record.msg, str):
        return WITHHELD
    values = arguments if isinstance(arguments, tuple) else (arguments,)
    if record.levelno == logging.INFO:
        return _filled(record.msg, values)
    # About a failure gunicorn quotes the request: its address as an argument, or what could not
    # be parsed after a colon. Numbers (process ids, exit codes) say nothing of a request.
    numbers = tuple(value if isinstance(value, int) else "..." for value in values)
    return _filled(record.msg, numbers).partition(": ")[0]


def _filled(template: str, values: tuple[object, ...]) -> str:
    try:
        return template % values if values else template
    except (TypeError, ValueError):
        return template
