"""An HTTP port beside the loops of a worker."""

import errno
from collections.abc import Callable, Iterable
from typing import Any, Final

from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer
from gevent.socket import socket

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_MOST_CONNECTIONS: Final = 1000
# Longer than a probe or a proxy keeps a connection between two requests.
_SILENCE_S: Final = 15
_FINISH_S: Final = 5
# An answer that is being written takes milliseconds.
_LEAST_FINISH_S: Final = 1


class PortError(Exception):
    """The port cannot be listened on."""

    def __init__(self, port: int, cause: OSError) -> None:
        why = f"cannot be opened ({cause.strerror})"
        if cause.errno == errno.EADDRINUSE:
            why = "is taken: stop what listens there"
        super().__init__(f"Port {port} {why}, or set PORT to another")


class _Handler(WSGIHandler):
    """Hands the request target on as it was sent, as gunicorn does."""

    def get_environ(self) -> dict[str, Any]:
        """Add the undecoded target to what WSGI asks for."""
        environ: dict[str, Any] = super().get_environ()
        environ["RAW_URI"] = self.path
        return environ


class _Server(WSGIServer):
    """Lets go of clients that say nothing."""

    def handle(self, sock: socket, address: Any) -> None:
        """Serve one connection."""
        sock.settimeout(_SILENCE_S)
        super().handle(sock, address)


class HttpServer:
    """Serves a WSGI application in this process."""

    def __init__(self, application: WSGIApplication, port: int) -> None:
        """Open the port, so that a clash is known before any job is claimed.

        Raises:
            PortError: something else listens there, or it may not be opened.
        """
        # The application writes its own request line; pywsgi's would hold the query string.
        self._server = _Server(
            ("0.0.0.0", port),  # noqa: S104 - a platform routes to it from outside
            application,
            log=None,
            error_log=None,
            handler_class=_Handler,
            # With a pool, stopping waits for what runs in it.
            spawn=Pool(_MOST_CONNECTIONS),
        )
        try:
            self._server.start()
        except OSError as error:
            raise PortError(port, error) from error

    def stop(self, left_s: float) -> None:
        """Accept nothing more and let running requests finish, for ``left_s`` but 1 to 5 s."""
        self._server.stop(timeout=min(max(left_s, _LEAST_FINISH_S), _FINISH_S))
