"""How a greenlet waits for PostgreSQL: cooperatively, and never for ever.

libpq blocks the whole process unless psycopg2 is given a wait callback, monkey patching or not.
The callback is also the only deadline that a frozen server cannot ignore: with one installed,
psycopg2 disregards ``connect_timeout``, and ``statement_timeout`` is the server's own to keep.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import psycopg2
from gevent.socket import wait_read, wait_write
from psycopg2 import extensions

CONNECT_CEILING_S: Final = 3.0
# A little above the server's own statement timeout: this one is for servers that cannot answer.
STATEMENT_CEILING_S: Final = 7.0

_ceiling_s: ContextVar[float | None] = ContextVar("ceiling_s", default=STATEMENT_CEILING_S)


def install() -> None:
    """Make every psycopg2 connection of this process wait through gevent."""
    extensions.set_wait_callback(_wait)


@contextmanager
def without_ceiling() -> Iterator[None]:
    """Let statements run as long as the server lets them: a migration builds indexes."""
    token = _ceiling_s.set(None)
    try:
        yield
    finally:
        _ceiling_s.reset(token)


def _wait(connection: Any) -> None:
    """Wait until libpq has what it asked for.

    Raises:
        psycopg2.OperationalError: the deadline passed; psycopg2 then closes the connection. An
            ordinary error on purpose: a BaseException would fly past every handler.
    """
    connecting = connection.status == extensions.STATUS_SETUP
    ceiling = CONNECT_CEILING_S if connecting else _ceiling_s.get()
    deadline = None if ceiling is None else time.monotonic() + ceiling
    while (state := connection.poll()) != extensions.POLL_OK:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise _too_late(connecting)
        wait = wait_read if state == extensions.POLL_READ else wait_write
        wait(connection.fileno(), timeout=left, timeout_exc=_too_late(connecting))


def _too_late(connecting: bool) -> psycopg2.OperationalError:  # noqa: FBT001 - a private helper
    what = "connect" if connecting else "answer a statement"
    return psycopg2.OperationalError(f"the database took too long to {what}")
