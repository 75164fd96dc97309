"""Log lines: one a record, on standard output, JSON or readable, from us and from libraries alike.

structlog shapes the records and the standard library carries them, so that what gunicorn,
SQLAlchemy and Alembic say comes out in the same form.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import structlog
from structlog.contextvars import merge_contextvars
from structlog.stdlib import BoundLogger, ProcessorFormatter, filter_by_level
from structlog.typing import EventDict, Processor, WrappedLogger

from notify_queue.domain.schedule import spell_instant
from notify_queue.observability.fields import (
    describe_foreign,
    is_trusted,
    keep_allowed,
)

SERVICE: Final = "notify-queue"

_TRACE: Final = 5
_THRESHOLDS: Final = {
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": _TRACE,
    "silent": logging.CRITICAL + 1,
}
_WORDS: Final = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_OWN: Final = "notify_queue"
# These come with handlers of their own, which would print past ours.
_CAPTURED: Final = ("gunicorn.error", "gunicorn.access")
_BASE: Final = frozenset({"level", "time", "service", "role", "pid", "context", "msg"})


class Logger:
    """Writes the events of one component. Fields are listed for each event in ``events``."""

    __slots__ = ("_bound",)

    def __init__(self, bound: BoundLogger) -> None:
        self._bound = bound

    def debug(self, event: str, **fields: object) -> None:
        """Write at level 20: only of use while looking for a fault."""
        self._bound.debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Write at level 30: the ordinary course."""
        self._bound.info(event, **fields)

    def warn(self, event: str, **fields: object) -> None:
        """Write at level 40: something went wrong and is taken care of."""
        self._bound.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Write at level 50: something went wrong and somebody should look."""
        self._bound.error(event, **fields)


def get_logger(context: str) -> Logger:
    """Give a component its logger, at any time: ``configure`` may come later."""
    bound: BoundLogger = structlog.wrap_logger(
        logging.getLogger(_OWN),
        processors=[
            filter_by_level,
            merge_contextvars,
            keep_allowed,
            ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=BoundLogger,
    ).bind(context=context)
    return Logger(bound)


def configure(level: str, *, readable: bool, role: str, stream: TextIO | None = None) -> None:
    """Send every record of this process to ``stream``, standard output unless given.

    ``level`` is a name of ``LOG_LEVEL``. Calling it again replaces what was configured, as does a
    server that sets up its own logging in between.
    """
    threshold = _THRESHOLDS[level]
    handler = _LineHandler(stream or sys.stdout)
    handler.setLevel(threshold)
    handler.addFilter(_worth_writing)
    handler.setFormatter(
        ProcessorFormatter(
            processors=[_base_fields(role), _readable_line if readable else _json_line],
            foreign_pre_chain=[describe_foreign],
            use_get_message=False,
            pass_foreign_args=True,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    for name in _CAPTURED:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes each line at once and whole, and flushes it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Stay silent: the standard answer prints the record, arguments and all, to stderr."""


def _worth_writing(record: logging.LogRecord) -> bool:
    """Let a library speak below a warning only when its text is written too."""
    return record.name == _OWN or is_trusted(record.name) or record.levelno >= logging.WARNING


def _base_fields(role: str) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
        record: logging.LogRecord = event_dict.pop("_record")
        del event_dict["_from_structlog"]
        return {
            # 10 trace, 20 debug, ... 60 fatal: one step above the standard library's numbers.
            "level": min(record.levelno // 10 * 10 + 10, 60),
            "time": spell_instant(datetime.fromtimestamp(record.created, UTC)),
            "service": SERVICE,
            "role": role,
            "pid": record.process,
            "context": event_dict.pop("context"),
            "msg": event_dict.pop("event"),
            **event_dict,
        }

    return add


def _json_line(_logger: WrappedLogger, _method: str, fields: EventDict) -> str:
    """Write ASCII only: no locale can then refuse a line, and no character can break one."""
    return json.dumps(fields, separators=(",", ":"))


def _readable_line(_logger: WrappedLogger, _method: str, fields: EventDict) -> str:
    pairs = [f"{name}={_plain(value)}" for name, value in fields.items() if name not in _BASE]
    message = fields["msg"] if _prints(fields["msg"]) else json.dumps(fields["msg"])
    head = f"{fields['time'][11:-1]} {_WORDS[fields['level']]:5} {fields['role']}"
    return " ".join([head, message, *pairs])


def _plain(value: Any) -> str:
    """Write one printable word bare, and anything else as JSON."""
    if isinstance(value, str) and value and " " not in value and _prints(value):
        return value
    return json.dumps(value, separators=(",", ":"))


def _prints(text: str) -> bool:
    return text.isascii() and text.isprintable()
