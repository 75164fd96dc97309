"""Connections to a URL that somebody configured, guarded against where it leads and what answers.

The name is resolved once for a connection, every address it has is judged, and the connection goes
to one of those very addresses: a name that changes between the check and the use cannot lead
elsewhere. The host header and the certificate keep to the name.
"""

import io
import socket
import ssl
import time
from http import HTTPStatus
from http.client import HTTPResponse, parse_headers
from typing import Any, Final

from urllib3.connection import HTTPConnection, HTTPSConnection

from notify_queue.domain.addresses import is_public

# What is read of one answer in all: status lines, headers, chunks and body.
MOST_BYTES: Final = 64 * 1024
# Servers close idle connections, some after two seconds. One that is closed while we send costs an
# attempt, so an idle one is not trusted for long.
_IDLE_S: Final = 1.0
# And none is kept for ever: its name may lead elsewhere by now.
_AGE_S: Final = 60.0


class AddressRefusedError(Exception):
    """The host leads to an address that is not public. No OSError, which would be reworded."""


class AnswerTooLongError(Exception):
    """The answer goes on and on."""


class AnswerCutOffError(Exception):
    """The answer ends before its headers do, so nobody knows what it was to say."""


class GuardedConnection(HTTPConnection):
    """A plain connection; ``allow_private`` lets it lead anywhere."""

    def __init__(self, *args: Any, allow_private: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._allow_private = allow_private
        self._opened = self._used = 0.0
        self.response_class = _BoundedResponse

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that takes us; they share the time there is."""
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        addresses = [(family, where) for family, _, _, _, where in found]
        if not self._allow_private and not all(is_public(str(at[0])) for _, at in addresses):
            raise AddressRefusedError
        for family, where in addresses[:-1]:
            try:
                return self._connect(family, where, len(addresses))
            except OSError:
                continue
        return self._connect(*addresses[-1], len(addresses))

    def _connect(self, family: int, where: Any, shares: int) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(None if self.timeout is None else float(self.timeout) / shares)
            for option in self.socket_options or ():
                sock.setsockopt(*option)
            sock.connect(where)
        except BaseException:
            sock.close()
            raise
        self._opened = self._used = time.monotonic()
        return sock

    @property
    def is_connected(self) -> bool:
        """Whether the connection may serve once more."""
        now = time.monotonic()
        fresh = now - self._used < _IDLE_S and now - self._opened < _AGE_S
        return fresh and super().is_connected

    def getresponse(self) -> Any:
        """Read the head of the answer."""
        answer = super().getresponse()
        self._used = time.monotonic()
        return answer


class GuardedTLSConnection(GuardedConnection, HTTPSConnection):
    """The same with TLS; its context makes sockets of :class:`ClosingTLSSocket`."""


class ClosingTLSSocket(ssl.SSLSocket):
    """Closes itself when a deadline strikes during the handshake: nobody else has it yet."""

    def do_handshake(self, *args: Any, **kwargs: Any) -> None:
        """Agree on keys with the other side."""
        try:
            super().do_handshake(*args, **kwargs)
        except BaseException:
            self.close()
            raise


class _BoundedResponse(HTTPResponse):
    """Reads no more than :data:`MOST_BYTES`, however the answer is made up.

    Each read that finds data goes on without giving way to others, so an endless stream of interim
    answers, headers or chunks would hold up the whole process, and no deadline could strike.
    """

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self._meter = _Metered(sock.makefile("rb", buffering=0))
        self.fp = io.BufferedReader(self._meter)

    def _read_status(self) -> tuple[str, int, str]:
        """Pass over interim answers, such as 103: the one that counts follows (RFC 9110, 15.2).

        The library does so for 100 alone. Taken for the answer, another one would leave the real
        answer to be read as that to the next request.
        """
        answer: tuple[str, int, str] = super()._read_status()  # type: ignore[misc] # not in its stubs
        while HTTPStatus.SWITCHING_PROTOCOLS < answer[1] < HTTPStatus.OK:
            parse_headers(self.fp)
            answer = super()._read_status()  # type: ignore[misc] # the same
        return answer

    def begin(self) -> None:
        """Read the head, to the empty line after it.

        The library takes the end of the connection for the end of the headers.
        """
        super().begin()
        if self._meter.ended:
            raise AnswerCutOffError
        if self.status == HTTPStatus.SWITCHING_PROTOCOLS:
            # Nobody asked for that, and what follows is no HTTP any more.
            self.will_close = True


class _Metered(io.RawIOBase):
    def __init__(self, raw: Any) -> None:
        super().__init__()
        self._raw = raw
        self._left = MOST_BYTES
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._left:
            raise AnswerTooLongError
        read: int | None = self._raw.readinto(memoryview(buffer)[: self._left])
        self._left -= read or 0
        self.ended = read == 0
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()
