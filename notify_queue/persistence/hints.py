"""LISTEN and NOTIFY: a hint that a job has become due, so that an idle worker need not poll.

Only a hint: it may be lost, late or doubled, and nothing but speed depends on it. It travels
outside the scheduling transaction, because NOTIFY makes commits wait for each other.
"""

import select
import threading
import time
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import SQLAlchemyError

CHANNEL: Final = "notify_queue_due"


def send_hint(engine: Engine) -> None:
    """Wake the workers that listen."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")
        connection.commit()


class HintListener:
    """Waits for hints on a connection of its own. Not for two greenlets at once."""

    def __init__(self, engine: Engine) -> None:
        """Connect later; ``engine`` must be direct, since a pooler delivers no notifications."""
        self._engine = engine
        self._connection: PoolProxiedConnection | None = None

    def wait(self, timeout_s: float) -> bool:
        """Wait for a hint; False when none came in time.

        True at once after a new connection was made: a hint may have been sent before it listened.

        Raises:
            Exception: the connection could not be made or broke; the next call makes a new one.
        """
        try:
            if self._connection is None:
                self._connection = self._engine.raw_connection()
                self._connection.cursor().execute(f"LISTEN {CHANNEL}")
                return True
            connection: Any = self._connection.driver_connection
            if not select.select([connection], [], [], timeout_s)[0]:
                return False
            connection.poll()
        except BaseException:
            self.close()
            raise
        hinted = bool(connection.notifies)
        connection.notifies.clear()
        return hinted

    def close(self) -> None:
        """Close the connection, broken or not."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection = None


class HintSender:
    """Sends hints for jobs that are due soon, from a thread of its own and not too often.

    One hint answers for every job scheduled since the last: workers take all that is due. The
    thread starts with the first call, which is after a web server has forked.
    """

    # Long enough that a burst of requests costs a hundred hints a second at most, short enough
    # that a job due now starts within a few milliseconds.
    DEBOUNCE_S: Final = 0.01

    def __init__(self, engine: Engine, horizon_s: float) -> None:
        """Hint only at jobs due within ``horizon_s``: workers look that far ahead themselves."""
        self._engine = engine
        self._horizon_s = horizon_s
        self._wanted = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, due_in_s: float) -> None:
        """Ask for a hint. Returns at once; call it after the commit that made the job visible."""
        if due_in_s > self._horizon_s:
            return
        self._wanted.set()
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            # A lost hint costs a worker's poll interval, and the request that asked is answered.
            with suppress(SQLAlchemyError):
                send_hint(self._engine)
            time.sleep(self.DEBOUNCE_S)
