"""A receiver of webhooks that does whatever a test wants, and notes what came."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

from tests.support.waiting import until

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """What came: the target, the headers in lower case, the exact body, which connection."""

    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Connection:
    """The receiver's side of one connection, for whoever answers."""

    def __init__(self, sock: socket.socket, closing: threading.Event) -> None:
        self._sock = sock
        self._closing = closing

    def send(self, data: bytes) -> None:
        """Write; raises ``OSError`` once the sender has gone."""
        self._sock.sendall(data)

    def hang(self, seconds: float | None = None) -> bool:
        """Say nothing for a while, or until the receiver is closed; true if it was."""
        return self._closing.wait(seconds)

    def repeat(self, data: bytes, every_s: float = 0) -> None:
        """Go on sending until the sender has had enough."""
        while not self.hang(every_s):
            self.send(data)


# Answers one request; returns whether the connection goes on.
Act = Callable[[Connection, Request], bool]


def answer(data: bytes = OK) -> Act:
    """Send this and go on."""

    def act(connection: Connection, _: Request) -> bool:
        connection.send(data)
        return True

    return act


def once(data: bytes) -> Act:
    """Send this, which may be nothing, and close."""

    def act(connection: Connection, _: Request) -> bool:
        connection.send(data)
        return False

    return act


def stream(head: bytes, more: bytes, every_s: float = 0) -> Act:
    """Send ``head`` and then ``more`` again and again, without an end."""

    def act(connection: Connection, _: Request) -> bool:
        connection.send(head)
        connection.repeat(more, every_s)
        return False

    return act


def status(code: int, *headers: str) -> Act:
    """Answer with a status, headers and no body."""
    lines = [f"HTTP/1.1 {code} Status", "Content-Length: 0", *headers, "", ""]
    return answer("\r\n".join(lines).encode())


def hang(connection: Connection, _: Request) -> bool:
    """Never answer."""
    connection.hang()
    return False


class Receiver:
    """Listens on loopback, over TLS given a context; ``act`` may be changed at any time."""

    def __init__(self, act: Act | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.act = act or answer()
        self.requests: list[Request] = []
        self.connections = 0
        self._tls = tls
        self._closing = threading.Event()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        # A blocked accept is woken by a shutdown, not by a close.
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def event_ids(self) -> list[str]:
        """The event of every request, in the order of their coming."""
        return [request.headers["x-webhook-event-id"] for request in list(self.requests)]

    def wait_for(self, count: int) -> list[Request]:
        """Wait until so many requests have come."""
        until(lambda: len(self.requests) >= count, f"{count} requests at the receiver")
        return list(self.requests)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(sock)
            number = self.connections
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            connection = Connection(sock, self._closing)
            # A sender that goes away in the middle is what many tests are about.
            with sock, sock.makefile("rb") as come:
                while (request := _read(come, number)) is not None:
                    self.requests.append(request)
                    if not self.act(connection, request):
                        return
        except (OSError, ValueError):
            return


def _read(come: BinaryIO, number: int) -> Request | None:
    first = come.readline().decode().split(" ")
    if len(first) < 3:
        return None
    headers = {}
    while line := come.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = come.read(int(headers.get("content-length", "0")))
    return Request(first[1], headers, body, number)
