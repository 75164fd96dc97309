"""One POST against receivers of every kind: it ends in time, and in the outcome of the table."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.processes import ROOT
from tests.support.receiver import OK, Act, Connection, Receiver, Request, answer, hang, status

# A deadline, and what is generous for a busy machine: none of these would end by themselves.
DEADLINE_MS = 1000
IN_TIME_MS = 5000


class Poster:
    """The helper process."""

    def __init__(self, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.poster"],
            cwd=ROOT,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def post(self, url: str, **order: Any) -> dict[str, Any]:
        """Post once and return what came of it."""
        told = {"url": url, "timeout_ms": DEADLINE_MS, "allow_private": True, **order}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def poster() -> Iterator[Poster]:
    """One process for all."""
    poster = Poster(HTTP_PROXY="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9")
    yield poster
    poster.end()


@pytest.mark.parametrize("code", [200, 201, 204, 299, 304, 400, 404, 410, 500, 503])
def test_the_status_is_what_the_receiver_says(poster: Poster, code: int) -> None:
    with Receiver(status(code)) as receiver:
        posted = poster.post(receiver.url, body='{"exact": "bytes"}')
    assert (posted["status"], posted["error"]) == (code, None)
    (request,) = receiver.requests
    assert request.body == b'{"exact": "bytes"}'
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("code", [300, 301, 302, 303, 305, 307, 308])
def test_no_redirect_is_followed(poster: Poster, code: int) -> None:
    with Receiver() as elsewhere, Receiver(status(code, f"Location: {elsewhere.url}")) as receiver:
        assert poster.post(receiver.url)["status"] == code
        # Nor is the connection to it opened by what comes next.
        poster.post(receiver.url)
    assert elsewhere.connections == 0


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ([], 0),
        (["Retry-After: 120"], 120),
        (["Retry-After: 999999"], 3600),
        (["Retry-After: soon"], 0),
        (["Retry-After: -5"], 0),
        (
            [
                f"Retry-After: {format_datetime(NOW + timedelta(seconds=90), usegmt=True)}",
                f"Date: {format_datetime(NOW, usegmt=True)}",
            ],
            90,
        ),
    ],
)
def test_the_receiver_may_ask_for_time(poster: Poster, headers: list[str], wait_s: int) -> None:
    with Receiver(status(429, *headers)) as receiver:
        posted = poster.post(receiver.url)
    assert (posted["status"], posted["wait_s"]) == (429, wait_s)


def _close(_connection: Connection, _request: Request) -> bool:
    return False


def _half_a_line(connection: Connection, _: Request) -> bool:
    connection.send(b"HTTP/1.1 20")
    return False


def _drip(head: bytes, every_s: float = 0.05) -> Act:
    def act(connection: Connection, _: Request) -> bool:
        connection.send(head)
        connection.repeat(b"x", every_s)
        return False

    return act


def _flood(head: bytes, more: bytes) -> Act:
    def act(connection: Connection, _: Request) -> bool:
        connection.send(head)
        connection.repeat(more)
        return False

    return act


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BOMB = zlib.compress(b"\0" * 50_000_000, 9)
GZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(BOMB)

NO_ANSWER = {
    "closes at once": _close,
    "closes in the status line": _half_a_line,
    "never answers": hang,
    "drips its headers": _drip(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "drips its status line": _drip(b""),
    "speaks another protocol": answer(b"220 smtp.example.com ESMTP\r\n"),
    "sends interim answers for ever": _flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "sends one header for ever": _flood(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "sends early hints for ever": _flood(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000),
    "sends headers for ever": _flood(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1000),
}
ANSWERED = {
    "drips its body": _drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
    "promises more than it sends": answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
    "sends chunks for ever": _flood(CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"),
    "extends its chunks for ever": _flood(CHUNKED, b"1;" + b"x" * 60_000 + b"\r\nx\r\n"),
    "sends a body for ever": _flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
    "sends a bomb": answer(GZIPPED + BOMB),
    "sends chunks that are none": answer(CHUNKED + b"zz\r\n"),
}


@pytest.mark.parametrize("kind", NO_ANSWER)
def test_no_receiver_keeps_an_attempt_from_ending(poster: Poster, kind: str) -> None:
    with Receiver(NO_ANSWER[kind]) as receiver:
        posted = poster.post(receiver.url)
    assert posted["error"]
    assert posted["ms"] < IN_TIME_MS
    # Whatever it sent, everybody else in the process had their turn meanwhile.
    assert posted["held_ms"] < DEADLINE_MS
    assert str(receiver.port) not in posted["error"]


@pytest.mark.parametrize("kind", ANSWERED)
def test_the_status_counts_whatever_follows_it(poster: Poster, kind: str) -> None:
    with Receiver(ANSWERED[kind]) as receiver:
        before = poster.post(receiver.url)["peak_kb"]
        posted = poster.post(receiver.url)
    assert posted["status"] == 200
    assert posted["ms"] < IN_TIME_MS
    assert posted["held_ms"] < DEADLINE_MS
    # Neither decoded nor kept.
    assert posted["peak_kb"] - before < 5_000


def test_a_receiver_that_refuses_is_named_by_its_error(poster: Poster) -> None:
    with Receiver() as receiver:
        pass
    assert poster.post(receiver.url)["error"] == "ECONNREFUSED"


def test_a_timeout_is_named(poster: Poster) -> None:
    with Receiver(hang) as receiver:
        error = poster.post(receiver.url, timeout_ms=200)["error"]
    assert error == "ECONNABORTED: no answer within 200ms"


def test_a_name_that_leads_nowhere_is_named(poster: Poster) -> None:
    assert poster.post("http://nowhere.invalid/")["error"] == "ENOTFOUND"


def test_a_connection_is_used_again(poster: Poster) -> None:
    with Receiver(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as receiver:
        for _ in range(3):
            poster.post(receiver.url)
    assert [request.connection for request in receiver.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    "order",
    [{"idle_s": 0.1, "pause_s": 0.2}, {"age_s": 0.1, "pause_s": 0.2}],
    ids=["idle", "old"],
)
def test_a_connection_is_not_used_for_ever(poster: Poster, order: dict[str, float]) -> None:
    with Receiver() as receiver:
        for _ in range(2):
            poster.post(receiver.url, **order)
    assert [request.connection for request in receiver.requests] == [1, 2]


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", EARLY, EARLY * 3])
def test_interim_answers_are_not_the_answer(poster: Poster, interim: bytes) -> None:
    with Receiver(answer(interim + b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")) as receiver:
        assert [poster.post(receiver.url)["status"] for _ in range(2)] == [400, 400]
    assert [request.connection for request in receiver.requests] == [1, 1]


def test_a_connection_that_speaks_something_else_is_not_used_again(poster: Poster) -> None:
    with Receiver(answer(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")) as receiver:
        assert [poster.post(receiver.url)["status"] for _ in range(2)] == [101, 101]
    assert [request.connection for request in receiver.requests] == [1, 2]


def test_a_connection_with_an_unread_rest_is_not_used_again(poster: Poster) -> None:
    # The rest of the first answer would be read as the second.
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000
    with Receiver(answer(long)) as receiver:
        posted = [poster.post(receiver.url)["status"] for _ in range(2)]
    assert posted == [200, 200]
    assert [request.connection for request in receiver.requests] == [1, 2]


PRIVATE = "Host leads to an address that is not public"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
    ],
)
def test_no_spelling_leads_to_a_private_address(poster: Poster, host: str) -> None:
    with Receiver() as receiver:
        posted = poster.post(f"http://{host}:{receiver.port}/", allow_private=False)
    assert posted["error"] == PRIVATE
    assert receiver.connections == 0


def test_one_private_address_among_public_ones_is_one_too_many(poster: Poster) -> None:
    with Receiver() as receiver:
        posted = poster.post(
            f"http://rebind.test:{receiver.port}/",
            allow_private=False,
            names={"rebind.test": ["8.8.8.8", "127.0.0.1"]},
        )
    assert posted["error"] == PRIVATE
    assert receiver.connections == 0


def test_the_next_address_is_tried_when_one_refuses(poster: Poster) -> None:
    with Receiver() as receiver:
        # The whole of 127/8 is this machine, and nobody listens on the first of the two.
        names = {"both.test": ["127.0.0.2", "127.0.0.1"]}
        posted = poster.post(f"http://both.test:{receiver.port}/", names=names)
    assert posted["status"] == 204
    assert receiver.requests[0].headers["host"] == f"both.test:{receiver.port}"


class TlsReceiver:
    """Answers one HTTPS connection after another with 204."""

    def __init__(self, authority: trustme.CA, name: str) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(self._context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            try:
                with self._context.wrap_socket(sock, server_side=True) as secured:
                    # To its end: closing with something unread would break the answer off.
                    come = secured.recv(65536)
                    while not come.endswith(b"\r\n\r\n{}") and (more := secured.recv(65536)):
                        come += more
                    self.requests.append(come)
                    secured.sendall(OK)
            except OSError:
                sock.close()

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_certificates_are_checked_against_the_name_and_who_signed(tmp_path: Path) -> None:
    trusted, stranger = trustme.CA(), trustme.CA()
    bundle = tmp_path / "ca.pem"
    trusted.cert_pem.write_to_path(str(bundle))
    poster = Poster(SSL_CERT_FILE=str(bundle))
    names = {"hook.test": ["127.0.0.1"]}
    good, wrong_name = TlsReceiver(trusted, "hook.test"), TlsReceiver(trusted, "other.test")
    unknown = TlsReceiver(stranger, "hook.test")
    posted = [
        poster.post(f"https://hook.test:{receiver.port}/x?y=1", names=names, timeout_ms=5000)
        for receiver in (good, wrong_name, unknown)
    ]
    for receiver in (good, wrong_name, unknown):
        receiver.close()
    poster.end()
    assert [each["status"] for each in posted] == [204, None, None]
    assert good.requests[0].startswith(b"POST /x?y=1 HTTP/1.1\r\n")
    assert posted[1]["error"] == posted[2]["error"] == "SSLCertVerificationError"
    assert wrong_name.requests == unknown.requests == []
