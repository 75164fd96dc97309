"""One POST against receivers of every kind: it ends in time, and in the outcome of the table."""

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from sqlalchemy.orm import sessionmaker

from notify_queue.delivery.webhook_post import WebhookPost
from notify_queue.persistence.unit_of_work import OpenUnitOfWorkError, UnitOfWork
from tests.integration.webhook_post.conftest import DEADLINE_MS, IN_TIME_MS, Poster
from tests.support.receiver import Receiver, answer, hang, once, status, stream


@pytest.mark.parametrize("code", [200, 201, 204, 299, 304, 400, 404, 410, 500, 503])
def test_the_status_is_what_the_receiver_says(poster: Poster, code: int) -> None:
    with Receiver(status(code)) as receiver:
        posted = poster.post(receiver.url, body='{"exact": "bytes"}')
    assert (posted["status"], posted["error"]) == (code, None)
    (request,) = receiver.requests
    assert request.body == b'{"exact": "bytes"}'
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("code", range(300, 309))
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
        (["Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"], 3600),
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


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Under 64 KiB, so that nothing but not unpacking it keeps it small.
BOMB = gzip.compress(b"\0" * 50_000_000)
GZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)

NO_ANSWER = {
    "closes at once": once(b""),
    "closes in the status line": once(b"HTTP/1.1 20"),
    "closes after the status": once(b"HTTP/1.1 200"),
    "closes after the status line": once(b"HTTP/1.1 200 OK\r\n"),
    "closes within a header": once(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "closes before the empty line": once(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
    "closes after an interim answer": once(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "sends many headers": once(b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 101 + b"\r\n"),
    "sends two lengths": once(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello"),
    "never answers": hang,
    "drips its headers": stream(b"HTTP/1.1 200 OK\r\nX-Secret: ", b"x", every_s=0.05),
    "drips its status line": stream(b"", b"x", every_s=0.05),
    "speaks another protocol": answer(b"220 secret.example.com ESMTP\r\n"),
    "speaks the first HTTP": once(b"<html>secret</html>\n"),
    "speaks in riddles": once(bytes(range(256)) * 16),
    "sends interim answers for ever": stream(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "sends one header for ever": stream(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "sends early hints for ever": stream(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000),
    "sends headers for ever": stream(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1000),
}
ANSWERED = {
    "drips its body": stream(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x", every_s=0.05
    ),
    "closes after the head": once(b"HTTP/1.1 200 OK\r\n\r\n"),
    "promises more than it sends": answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
    "sends chunks for ever": stream(CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"),
    "extends its chunks for ever": stream(CHUNKED, b"1;" + b"x" * 60_000 + b"\r\nx\r\n"),
    "sends a body for ever": stream(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
    "sends a bomb": answer(GZIPPED + BOMB),
    "sends chunks that are none": answer(CHUNKED + b"zz\r\n"),
}


@pytest.mark.parametrize("kind", NO_ANSWER)
def test_no_receiver_keeps_an_attempt_from_ending(poster: Poster, kind: str) -> None:
    with Receiver(NO_ANSWER[kind]) as receiver:
        posted = poster.post(f"{receiver.url}/secret?secret=1")
    assert posted["error"]
    assert posted["ms"] < IN_TIME_MS
    # Whatever it sent, everybody else in the process had their turn meanwhile.
    assert posted["held_ms"] < DEADLINE_MS
    assert "secret" not in posted["error"]
    assert str(receiver.port) not in posted["error"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("closes at once", "ECONNRESET"),
        ("closes within a header", "Answer cut off"),
        ("sends many headers", "Answer with too many headers"),
        ("sends early hints for ever", "Answer too long"),
        ("speaks another protocol", "BadStatusLine"),
    ],
)
def test_what_was_wrong_with_an_answer_is_named(poster: Poster, kind: str, name: str) -> None:
    with Receiver(NO_ANSWER[kind]) as receiver:
        assert poster.post(receiver.url)["error"] == name


@pytest.mark.parametrize("kind", ANSWERED)
def test_the_status_counts_whatever_follows_it(poster: Poster, kind: str) -> None:
    with Receiver(ANSWERED[kind]) as receiver:
        posted = poster.post(receiver.url)
    assert posted["status"] == 200
    assert posted["ms"] < IN_TIME_MS
    assert posted["held_ms"] < DEADLINE_MS
    # Neither decoded nor kept.
    assert posted["memory_kb"] < 1_000


def test_a_receiver_that_refuses_is_named_by_its_error(poster: Poster) -> None:
    with Receiver() as receiver:
        pass
    assert poster.post(receiver.url)["error"] == "ECONNREFUSED"


def test_a_timeout_is_named(poster: Poster) -> None:
    with Receiver(hang) as receiver:
        error = poster.post(receiver.url, timeout_ms=200)["error"]
    assert error == "ECONNABORTED: no answer within 200ms"


def test_nothing_but_the_deadline_ends_a_wait_for_the_answer(poster: Poster) -> None:
    # In a busy process a timeout of the socket would now and then strike first, under its own name.
    with Receiver() as receiver:
        posted = poster.post(receiver.url)
    assert (posted["status"], posted["kept_waits_s"]) == (204, None)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        # An interface that is none: nobody else is asked, and nobody can make the answer wait.
        ("fe80::1%nowhere", "ENOTFOUND"),
        ("EAI_NONAME", "ENOTFOUND"),
        # The name may well exist.
        ("EAI_AGAIN", "EAI_AGAIN"),
    ],
)
def test_a_name_that_leads_nowhere_is_named(poster: Poster, address: str, error: str) -> None:
    names = {"nowhere.test": [[address]]}
    assert poster.post("http://nowhere.test/", names=names)["error"] == error


def test_nothing_is_posted_inside_an_open_unit_of_work() -> None:
    with Receiver() as receiver:
        post = WebhookPost(
            receiver.url, most=1, timeout_ms=1000, allow_private=True, wall_clock=lambda: NOW
        )
        with UnitOfWork(sessionmaker()), pytest.raises(OpenUnitOfWorkError):
            post(b"{}", {})
    assert receiver.connections == 0
