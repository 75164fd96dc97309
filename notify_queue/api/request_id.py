"""The id of a request: the caller's if it is fit to be repeated, else a new one."""

import re
from typing import Final
from uuid import uuid4

from flask import Flask, Response, g, request

from notify_queue.observability.context import bind_request_id, clear_request_id

HEADER: Final = "X-Request-ID"
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def register(app: Flask) -> None:
    """Give every request its id, bound to its log lines and sent back with the answer."""
    app.before_request(_begin)
    app.after_request(_echo)
    app.teardown_request(_end)


def request_id() -> str:
    """Return the id of the request being served."""
    current: str = g.request_id
    return current


def _begin() -> None:
    sent = request.headers.get(HEADER, "")
    g.request_id = sent if _ACCEPTED.fullmatch(sent) else str(uuid4())
    bind_request_id(g.request_id)


def _echo(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response


def _end(_: BaseException | None) -> None:
    # The next request on this connection runs in the same greenlet.
    clear_request_id()
