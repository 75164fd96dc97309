"""Gunicorn's gevent worker, but for SIGINT and for requests that cannot be read or never end."""

import signal
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from gunicorn.http import errors
from gunicorn.workers.ggevent import GeventWorker

from notify_queue.api.app import body_given_up
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

    def init_signals(self) -> None:
        """Take SIGINT for SIGTERM: a terminal sends it to every process, and not only once."""
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> Any:
        """Serve one request, and close the connection if its body was given up."""
        super().handle_request(listener_name, req, sock, addr)
        if body_given_up.get():
            # Gunicorn's own way to say that this connection serves no further request.
            raise StopIteration

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
