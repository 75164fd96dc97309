"""One POST to the webhook's receiver: it always ends in time, and always in an answer or none."""

import errno
import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final

import certifi
import gevent
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from notify_queue.delivery.guarded import (
    AddressRefusedError,
    AnswerCutOffError,
    AnswerTooLongError,
    ClosingTLSSocket,
    GuardedConnection,
    GuardedTLSConnection,
)
from notify_queue.domain.retry_after import retry_after_s
from notify_queue.domain.webhook_event import Answer, Answered, NoAnswer
from notify_queue.persistence.unit_of_work import refuse_open_unit_of_work

# Read for the connection's sake alone: what a polite receiver answers ends within this.
_MOST_OF_BODY: Final = 4 * 1024
_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "notify-queue"}
_NAMED: Final[dict[type[BaseException], str]] = {
    AddressRefusedError: "Host leads to an address that is not public",
    AnswerCutOffError: "Answer cut off",
    AnswerTooLongError: "Answer too long",
    # The one that http.client raises itself, and not one of its own kinds of it.
    HTTPException: "Answer with too many headers",
}


class WebhookPost:
    """Posts to one URL over at most ``most`` connections, which are kept and used again.

    ``timeout_ms`` is for everything together: finding the address, connecting, sending, waiting,
    reading. No redirect is followed and nothing is tried twice.
    """

    def __init__(
        self,
        url: str,
        *,
        most: int,
        timeout_ms: int,
        allow_private: bool,
        wall_clock: Callable[[], datetime],
    ) -> None:
        """Connect to nothing yet."""
        address = parse_url(url)
        self._target = address.request_uri
        self._timeout_ms = timeout_ms
        self._wall_clock = wall_clock
        kind: type[HTTPConnectionPool] = HTTPConnectionPool
        connection: type[GuardedConnection] = GuardedConnection
        guard: dict[str, Any] = {"allow_private": allow_private}
        if address.scheme == "https":
            kind, connection = HTTPSConnectionPool, GuardedTLSConnection
            guard["ssl_context"] = _trusting()
        self._pool = kind(address.host or "", address.port, maxsize=most, block=True, **guard)
        self._pool.ConnectionCls = connection

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post ``body`` and say what the receiver answered.

        The status is its word; a body that never ends changes nothing about it.

        Raises:
            OpenUnitOfWorkError: the caller holds a transaction open.
        """
        refuse_open_unit_of_work("A webhook POST")
        deadline = gevent.Timeout(self._timeout_ms / 1000)
        response = None
        try:
            with deadline:
                response = self._post(body, headers)
                response.read(_MOST_OF_BODY, decode_content=False)
        except (Exception, gevent.Timeout) as error:
            if isinstance(error, gevent.Timeout) and error is not deadline:
                raise
            if response is None:
                return NoAnswer(self._told(error))
        finally:
            if response is not None:
                # What was not read to its end cannot be used again.
                response.close()
                response.release_conn()
        asked, date = response.headers.get("Retry-After"), response.headers.get("Date")
        return Answered(response.status, retry_after_s(asked, date, self._wall_clock()))

    def _post(self, body: bytes, headers: Mapping[str, str]) -> BaseHTTPResponse:
        return self._pool.urlopen(
            "POST",
            self._target,
            body,
            {**_HEADERS, **headers},
            retries=False,
            redirect=False,
            # The deadline above is the one that counts. Connecting has one of its own, which the
            # addresses of a host share.
            timeout=Timeout(connect=self._timeout_ms / 1000, read=None),
            preload_content=False,
            decode_content=False,
        )

    def _told(self, error: BaseException) -> str:
        """Name what went wrong, in words that quote neither the URL nor the receiver."""
        cause = _innermost(error)
        if isinstance(cause, gevent.Timeout | TimeoutError):
            return f"ECONNABORTED: no answer within {self._timeout_ms}ms"
        if isinstance(cause, socket.gaierror):
            # The name server's fault, not the name's.
            return "EAI_AGAIN" if cause.errno == socket.EAI_AGAIN else "ENOTFOUND"
        if isinstance(cause, ConnectionResetError):
            return "ECONNRESET"
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            return errno.errorcode.get(cause.errno, type(cause).__name__)
        return _NAMED.get(type(cause), type(cause).__name__)


def _trusting() -> ssl.SSLContext:
    """Trust whom the machine trusts and whom browsers do: some machines know nobody."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    context.sslsocket_class = ClosingTLSSocket
    return context


def _innermost(error: BaseException) -> BaseException:
    """What the HTTP library has wrapped."""
    while isinstance(error, HTTPError):
        inside = [part for part in error.args if isinstance(part, BaseException)]
        if not inside:
            break
        error = inside[-1]
    return error
