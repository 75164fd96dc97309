"""The HTTP API as a WSGI application.

A request gets its id, then its body is read and parsed, and only then is it routed: a broken body
is refused in the same words whatever path it was sent to.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Final

import gevent
from flask import Flask, Request, g, request
from werkzeug.routing import MapAdapter

from notify_queue.api import errors, request_id
from notify_queue.api.blueprints.health import health
from notify_queue.api.blueprints.mock_webhooks import MockReceiverUseCases, mock_webhooks
from notify_queue.api.blueprints.notifications import NotificationUseCases, notifications
from notify_queue.api.content import read_bounded
from notify_queue.api.json_body import BodyHeaders, parse_sent
from notify_queue.api.refusals import RequestRefusedError
from notify_queue.api.request_log import RequestLog
from notify_queue.api.security import add_security_headers
from notify_queue.api.target import exact, folded, target_of
from notify_queue.metrics.health import Health

# 64 KiB at the pace of a bad telephone line.
_BODY_DEADLINE_S: Final = 10

# Whether the last request of this greenlet's connection was answered before its body had come.
# What comes later is still that body: read as the next request, it could be anything.
body_given_up: ContextVar[bool] = ContextVar("body_given_up", default=False)


@dataclass(frozen=True)
class UseCases:
    """What the API asks for: all that is done with notifications, and a look at the database.

    ``mock_receiver`` is None where no mock receiver is to be served.
    """

    notifications: NotificationUseCases
    health: Callable[[], Health]
    mock_receiver: MockReceiverUseCases | None = None


def create_app(use_cases: UseCases, role: str) -> Flask:
    """Make the application of a process: all of the API, or what a worker shows of itself.

    ``role`` is ``api``, ``worker`` or ``all``.
    """
    worker = role == "worker"
    app = _Application(worker=worker)
    app.register_blueprint(health(use_cases.health))
    if not worker:
        app.register_blueprint(notifications(use_cases.notifications))
        if use_cases.mock_receiver is not None:
            app.register_blueprint(mock_webhooks(use_cases.mock_receiver))
    log = RequestLog(app.literals)
    request_id.register(app)
    log.register(app)
    app.before_request(_read_body)
    app.after_request(add_security_headers)
    errors.register(app, worker=worker, report=log.unexpected)
    return app


class _Application(Flask):
    """A Flask that routes on the path as it was sent, percent-encoding included.

    So an id is decoded by our own rules, and the path can be reported as it came. A worker's paths
    match exactly, those of the API in any case and with or without one trailing slash.
    """

    def __init__(self, *, worker: bool) -> None:
        super().__init__(__name__, static_folder=None, template_folder=None)
        self._worker = worker
        self.config["PROVIDE_AUTOMATIC_OPTIONS"] = False

    @cached_property
    def literals(self) -> frozenset[str]:
        """The fixed words in the paths of all routes."""
        segments = {part for rule in self.url_map.iter_rules() for part in rule.rule.split("/")}
        return frozenset(part for part in segments if part and not part.startswith("<"))

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to the path of a request. The host it was sent to does not matter."""
        if request is None:
            return None
        path = target_of(request.environ).path
        routed = exact(path) if self._worker else folded(path, self.literals)
        return self.url_map.bind("", path_info=routed, default_method=request.method)


def _read_body() -> None:
    """Read all of it within a deadline: a client that drips must not hold a greenlet for ever."""
    headers = BodyHeaders(
        content_type=request.headers.get("Content-Type", ""),
        content_encoding=request.headers.get("Content-Encoding", ""),
        length=request.content_length,
    )
    deadline = gevent.Timeout(_BODY_DEADLINE_S)
    try:
        with deadline:
            g.sent = read_bounded(request.stream, headers.length)
            g.body = parse_sent(g.sent, headers)
    except gevent.Timeout as timeout:
        if timeout is not deadline:
            raise
        body_given_up.set(True)
        raise RequestRefusedError(
            HTTPStatus.REQUEST_TIMEOUT,
            f"Request body did not arrive within {_BODY_DEADLINE_S} seconds",
        ) from None
