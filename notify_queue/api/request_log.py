"""One log line for each request, and one for each surprise. Neither holds a caller's data."""

from collections.abc import Callable
from http import HTTPStatus
from time import perf_counter
from typing import Final

from flask import Flask, Response, g, request

from notify_queue.api.target import folded, loggable, loggable_method, target_of
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error

_LOG: Final = get_logger("http")
# Probes come every few seconds and say nothing.
_UNLOGGED: Final = "/health"
_MS_PER_SECOND: Final = 1000


class RequestLog:
    """Writes the lines of one application, whose route words are ``literals``."""

    def __init__(self, literals: frozenset[str]) -> None:
        self._literals = literals

    def register(self, app: Flask) -> None:
        """Write a line once the answer to a request is known."""
        app.before_request(_start_clock)
        app.after_request(self._write)

    def unexpected(self, error: Exception) -> None:
        """Write what went wrong, without its text: that may quote anything."""
        _LOG.error(
            events.HTTP_ERROR,
            method=loggable_method(request.method),
            path=self._path(),
            error=describe_error(error),
        )

    def _write(self, response: Response) -> Response:
        method, path = loggable_method(request.method), self._path()
        if folded(path, self._literals) != _UNLOGGED:
            _writer(response.status_code)(
                events.HTTP_REQUEST,
                msg=f"{method} {path} {response.status_code}",
                req={"method": method, "path": path},
                res={"statusCode": response.status_code},
                responseTime=round((perf_counter() - g.started) * _MS_PER_SECOND),
            )
        return response

    def _path(self) -> str:
        return loggable(target_of(request.environ).path, self._literals)


def _start_clock() -> None:
    g.started = perf_counter()


def _writer(status: int) -> Callable[..., None]:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _LOG.error
    return _LOG.warn if status >= HTTPStatus.BAD_REQUEST else _LOG.info
