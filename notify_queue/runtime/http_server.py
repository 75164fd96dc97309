"""An HTTP port beside the loops of a worker."""

from collections.abc import Callable, Iterable
from typing import Any

from gevent.pywsgi import WSGIServer

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class PortTakenError(Exception):
    """Another process listens on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(f"Port {port} is taken: stop what listens there or set PORT to another")


class HttpServer:
    """Serves a WSGI application in this process."""

    def __init__(self, application: WSGIApplication, port: int) -> None:
        """Open the port, so that a clash is known before any job is claimed.

        Raises:
            PortTakenError: something else listens there.
        """
        # The application writes its own request line; pywsgi's would hold the query string.
        self._server = WSGIServer(("0.0.0.0", port), application, log=None, error_log=None)  # noqa: S104 - a platform routes to it from outside
        try:
            self._server.start()
        except OSError as error:
            raise PortTakenError(port) from error

    def stop(self) -> None:
        """Accept nothing more and let running requests finish for a moment."""
        self._server.stop(timeout=1)
