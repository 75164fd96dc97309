"""The version of the schema: what the code needs, what the database has, how to bring it there."""

import time
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from notify_queue.persistence.waiting import without_ceiling

# The newest migration. Revisions are numbered, so versions compare as text.
REQUIRED_VERSION: Final = "0010_mock_webhook_receipts"
MIGRATIONS: Final = Path(__file__).parents[2] / "migrations"

# "notify_q" as a number: any other product's lock on the same database has another.
_ADVISORY_KEY: Final = 0x6E6F746966795F71
# A second migration run waits this long for the first; then something is wrong.
_QUEUE_FOR_LOCK_S: Final = 120
_LOOK_EVERY_S: Final = 0.1
# A migration that cannot get its lock at once would hold up all traffic behind it: give up.
_MIGRATE_LOCK: Final = "SET lock_timeout = '3s'"


class OutdatedSchemaError(Exception):
    """The database is older than the code."""

    def __init__(self, found: str | None) -> None:
        super().__init__(
            f"The database schema is {found or 'missing'}, this version needs {REQUIRED_VERSION}:"
            " run `python -m notify_queue migrate` first"
        )


class MigrationRunningError(Exception):
    """Another run has been migrating for so long that something is wrong with it."""

    def __init__(self) -> None:
        super().__init__(f"Another migration has been running for {_QUEUE_FOR_LOCK_S} s")


def upgrade(engine: Engine, revision: str = "head") -> str | None:
    """Bring the schema to ``revision`` and return the version reached.

    ``engine`` must be direct: the advisory lock is a session's, and a pooler would hand the session
    to somebody else. Runs that start together queue up; the later ones find nothing to do.
    """
    with engine.connect() as connection, without_ceiling():
        _queue_for_lock(connection)
        connection.exec_driver_sql(_MIGRATE_LOCK)
        migrating = _transactional(connection)
        command.upgrade(_config(migrating), revision)
        return _version(migrating)


def _queue_for_lock(connection: Connection) -> None:
    """Take the lock that is held from the first check to the last commit.

    It is let go with the connection. Asked for again and again: a statement that waited for it
    would hold a snapshot, for which the first run's concurrent index builds would wait in turn.
    """
    deadline = time.monotonic() + _QUEUE_FOR_LOCK_S
    while not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _ADVISORY_KEY}):
        if time.monotonic() > deadline:
            raise MigrationRunningError
        time.sleep(_LOOK_EVERY_S)


def require_current(engine: Engine) -> None:
    """Refuse to go on with a schema older than the code; a newer one is fine during a deploy.

    Raises:
        OutdatedSchemaError: with the command that mends it.
    """
    with engine.connect() as connection:
        found = _version(connection)
    if found is None or found < REQUIRED_VERSION:
        raise OutdatedSchemaError(found)


def _transactional(connection: Connection) -> Connection:
    """Leave autocommit, which stood for the lock: each migration brackets itself."""
    connection.commit()
    return connection.execution_options(isolation_level="READ COMMITTED")


def _version(connection: Connection) -> str | None:
    if connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config
