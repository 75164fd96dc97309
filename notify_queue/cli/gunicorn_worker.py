"""Gunicorn's gevent worker, but for what it says when it cannot read a request."""

import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from gunicorn.http import errors
from gunicorn.workers.ggevent import GeventWorker

from notify_queue.api.unread import refuse_unread

# The statuses gunicorn would give; any other fault in a request is 400.
_STATUSES: Final = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
    errors.UnsupportedTransferCoding: HTTPStatus.NOT_IMPLEMENTED,
}


class Worker(GeventWorker):
    """Answers in the one shape of the API where gunicorn would send a page that quotes."""

    def handle_error(
        self, _req: Any, client: socket.socket, _addr: Any, exc: BaseException
    ) -> None:
        """Refuse what could not be read; gunicorn closes the connection afterwards."""
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        if isinstance(exc, errors.ParseException):
            status = _STATUSES.get(type(exc), HTTPStatus.BAD_REQUEST)
        # A client that has gone needs no answer.
        with suppress(OSError):
            client.sendall(refuse_unread(exc, status))
