"""A greenlet waits for PostgreSQL cooperatively, and never for ever."""

import socket
from collections.abc import Iterator
from contextlib import closing

import gevent
import psycopg2
import pytest
from psycopg2 import extensions

from notify_queue.persistence import waiting
from notify_queue.persistence.waiting import install, without_ceiling

CEILING_S = 0.05


@pytest.fixture(autouse=True)
def _low_ceilings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(waiting, "CONNECT_CEILING_S", CEILING_S)
    token = waiting._ceiling_s.set(CEILING_S)
    yield
    waiting._ceiling_s.reset(token)


@pytest.fixture
def _installed() -> Iterator[None]:
    before = extensions.get_wait_callback()
    install()
    yield
    extensions.set_wait_callback(before)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word, like a frozen server."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


class Statement:
    """A connection with a statement on its way, as the wait callback sees it."""

    status = extensions.STATUS_READY

    def __init__(self) -> None:
        self._ours, self._servers = socket.socketpair()
        self._ours.settimeout(0)
        self.wants_more = False

    def answer(self) -> None:
        """Let the server answer."""
        self._servers.send(b"1")

    def fileno(self) -> int:
        """Where the answer comes in."""
        return self._ours.fileno()

    def poll(self) -> int:
        """Look whether the server has answered."""
        try:
            self._ours.recv(1)
        except BlockingIOError:
            return extensions.POLL_READ
        return extensions.POLL_READ if self.wants_more else extensions.POLL_OK

    def close(self) -> None:
        """Close both ends."""
        self._ours.close()
        self._servers.close()


@pytest.fixture
def statement() -> Iterator[Statement]:
    with closing(Statement()) as statement:
        yield statement


@pytest.mark.usefixtures("_installed")
def test_a_server_that_takes_connections_and_says_nothing_is_given_up(silent_port: int) -> None:
    with pytest.raises(psycopg2.OperationalError, match="took too long to connect"):
        psycopg2.connect(host="127.0.0.1", port=silent_port, dbname="x", user="x")


@pytest.mark.usefixtures("_installed")
def test_other_greenlets_run_while_one_waits_for_a_connection(silent_port: int) -> None:
    order: list[str] = []
    other = gevent.spawn(order.append, "the other")
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(host="127.0.0.1", port=silent_port, dbname="x", user="x")
    order.append("the one that waits")
    other.join(5)
    assert order == ["the other", "the one that waits"]


def test_a_statement_that_is_not_answered_is_given_up(statement: Statement) -> None:
    with pytest.raises(psycopg2.OperationalError, match="took too long to answer a statement"):
        waiting._wait(statement)


def test_an_answer_in_time_ends_the_wait(statement: Statement) -> None:
    gevent.spawn(statement.answer)
    waiting._wait(statement)


def test_an_answer_that_drips_does_not_move_the_deadline(statement: Statement) -> None:
    statement.wants_more = True

    def drip() -> None:
        while True:
            gevent.sleep(CEILING_S / 5)
            statement.answer()

    dripping = gevent.spawn(drip)
    with gevent.Timeout(5), pytest.raises(psycopg2.OperationalError):
        waiting._wait(statement)
    dripping.kill()


def test_a_migration_waits_as_long_as_it_takes(statement: Statement) -> None:
    gevent.spawn_later(2 * CEILING_S, statement.answer)
    with without_ceiling():
        waiting._wait(statement)


def test_the_ceiling_is_back_after_a_migration(statement: Statement) -> None:
    with pytest.raises(KeyError), without_ceiling():
        raise KeyError
    with pytest.raises(psycopg2.OperationalError):
        waiting._wait(statement)
