"""Databases in trouble, and a look at the sessions that the product holds on one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

from sqlalchemy import Connection, Engine, text

from notify_queue.persistence.engine import direct_engine, pooled_engine
from notify_queue.persistence.schema import upgrade
from tests.support.postgres import TestServer, start_server

# What the product's processes call themselves.
API = "notify-queue api"
WORKER = "notify-queue worker"


@dataclass(frozen=True)
class OwnServer:
    """A server that a test may stop and freeze, with one migrated database."""

    server: TestServer
    url: str
    engine: Engine

    @contextmanager
    def down(self) -> Iterator[None]:
        """Stop it for a while. It comes back on the same port with the same data."""
        self.engine.dispose()
        self.server.terminate()
        try:
            yield
        finally:
            self.server.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it hang for a while: connections stay open and nothing answers, not even us."""
        postmaster = self.server.postmaster_pid
        stopped: list[int] = []
        with self.engine.connect() as connection:
            try:
                # The postmaster first: from then on there are no new sessions to miss.
                for pid in chain([postmaster], self._pids(connection)):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
                yield
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)

    def _pids(self, connection: Connection) -> Iterator[int]:
        """Every session and every task of the server. Asked before the first is handed out."""
        yield from connection.scalars(text("SELECT pid FROM pg_stat_activity")).all()


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """Start a server with a migrated database; it is gone afterwards."""
    server = start_server()
    try:
        url = server.url("postgres")
        upgrade(direct_engine(url, "notify-queue tests"))
        engine = pooled_engine(url, "notify-queue tests", 5)
        yield OwnServer(server, url, engine)
        engine.dispose()
    finally:
        server.stop()


@contextmanager
def engine_on(url: str) -> Iterator[Engine]:
    """A few connections to a database made for one test."""
    engine = pooled_engine(
        "postgresql+psycopg2://" + url.split("://", 1)[1], "notify-queue tests", 5
    )
    yield engine
    engine.dispose()


@contextmanager
def writes_blocked(engine: Engine) -> Iterator[None]:
    """Hold a lock on the ledger, so that every statement on it hangs."""
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE notification_jobs IN ACCESS EXCLUSIVE MODE"))
        yield


def waiting_for_a_lock(engine: Engine, application: str, for_s: float = 0) -> int:
    """How many sessions of ``application`` hang in a lock, in a statement at least that old."""
    old = f"query_start <= clock_timestamp() - interval '{for_s} s'"
    return _count(engine, application, f"wait_event_type = 'Lock' AND {old}")


def connections(engine: Engine, application: str) -> int:
    """How many sessions ``application`` has."""
    return _count(engine, application, "true")


def idle_in_transaction(engine: Engine, application: str, *, longer_than_ms: int) -> int:
    """How many sessions of ``application`` have had a transaction open that long for nothing."""
    return _count(
        engine,
        application,
        "state LIKE 'idle in transaction%'"
        f" AND state_change < clock_timestamp() - interval '{longer_than_ms} ms'",
    )


def listening(engine: Engine, application: str) -> bool:
    """Whether ``application`` waits for hints."""
    return _count(engine, application, "query LIKE 'LISTEN %'") > 0


def end_sessions(engine: Engine, application: str) -> int:
    """Break every connection of ``application`` and say how many there were."""
    with engine.begin() as connection:
        ended = connection.scalars(
            # Listed first: as a mere condition it could be run on every session, ours included.
            text(
                "WITH theirs AS MATERIALIZED (SELECT pid FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = :application)"
                " SELECT pg_terminate_backend(pid) FROM theirs"
            ),
            {"application": application},
        )
        return len(ended.all())


def _count(engine: Engine, application: str, condition: str) -> int:
    """Count sessions on the database that the engine is connected to."""
    with engine.begin() as connection:
        counted = connection.scalar(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                f" AND application_name = :application AND {condition}"
            ),
            {"application": application},
        )
    return int(counted or 0)
