"""Engines: how this process connects to PostgreSQL, and the deadlines of every transaction."""

import json
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Engine, NullPool, create_engine, event

from notify_queue.persistence.waiting import CONNECT_CEILING_S

__all__ = ["Engine", "direct_engine", "pooled_engine"]

# Nothing in the product takes longer than milliseconds; these are for a database in trouble. The
# lock timeout is the shorter, so that a blocked statement says what it waited for.
STATEMENT_TIMEOUT_MS: Final = 5_000
LOCK_TIMEOUT_MS: Final = 2_000
IDLE_IN_TRANSACTION_TIMEOUT_MS: Final = 10_000
# How long a greenlet waits for a pooled connection before it gives up.
POOL_TIMEOUT_S: Final = 5.0

_CONNECT: Final = {
    # Without gevent's wait callback this is the connect deadline; whole seconds, at least 2.
    "connect_timeout": int(CONNECT_CEILING_S),
    # A peer that vanished without a word is noticed within about a minute, not in two hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# Set for each transaction, not for the session: behind PgBouncer in transaction mode a session
# setting would reach whoever gets the server connection next, and startup options are refused.
_DEADLINES: Final = (
    f"SELECT set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', true),"
    f" set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', true),"
    f" set_config('idle_in_transaction_session_timeout',"
    f" '{IDLE_IN_TRANSACTION_TIMEOUT_MS}', true),"
    # Instants come back in the session's zone, and west of Greenwich the year 1 would be BC, which
    # Python does not know.
    " set_config('TimeZone', 'UTC', true)"
)


def pooled_engine(url: str, application_name: str, pool_size: int) -> Engine:
    """Build the engine of a process: at most ``pool_size`` connections, READ COMMITTED.

    The isolation level is ours whatever the database's default: every guard in the repositories
    relies on a statement seeing what has been committed before it began.
    """
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_S,
        # The few most recent connections serve a quiet process; the others may fall idle.
        pool_use_lifo=True,
        # One small round trip, and a restarted database costs no request an error.
        pool_pre_ping=True,
        pool_recycle=1_800,
        **_common(application_name),
    )
    event.listen(engine, "begin", _set_deadlines)
    return engine


def direct_engine(url: str, application_name: str) -> Engine:
    """Build an engine for what belongs to one session: LISTEN, migrations and their lock.

    Each connection is opened for its purpose, in autocommit, and closed after it.
    """
    return create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=NullPool, **_common(application_name)
    )


def _common(application_name: str) -> dict[str, Any]:
    return {
        "connect_args": {**_CONNECT, "application_name": application_name},
        # Statements may be logged by SQLAlchemy; what is bound to them never.
        "hide_parameters": True,
        "json_serializer": partial(json.dumps, allow_nan=False, separators=(",", ":")),
    }


def _set_deadlines(connection: Connection) -> None:
    connection.exec_driver_sql(_DEADLINES)
