"""One server and one migrated template for the whole run; a clean database for each test.

``DATABASE_URL`` chooses a real server instead of one of our own; ``TEST_POSTGRES_BIN`` the programs
to start ours with.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from notify_queue.persistence.engine import direct_engine, pooled_engine
from notify_queue.persistence.schema import upgrade
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from notify_queue.settings.values import declarations
from tests.support.events import Events
from tests.support.jobs import Jobs
from tests.support.postgres import Databases, sqlalchemy_url, start_server
from tests.support.processes import Processes

_REAL_SERVER = os.environ.get("DATABASE_URL", "")
# No setting of this machine may reach a test or a process that it starts.
for _name in declarations():
    os.environ.pop(_name, None)

_TABLES = (
    "job_queue",
    "notification_jobs",
    "rate_limit_gates",
    "sent_jobs",
    "mock_provider_deliveries",
    "mock_webhook_receipts",
)


@pytest.fixture(scope="session")
def admin_url() -> Iterator[str]:
    """A database on the server of this run, from which others are made."""
    if _REAL_SERVER:
        yield _REAL_SERVER.replace("postgres://", "postgresql://", 1)
        return
    server = start_server()
    yield server.url("postgres")
    server.stop()


@pytest.fixture(scope="session")
def databases(admin_url: str) -> Iterator[Databases]:
    """Makes databases; clones are migrated."""
    made = Databases(admin_url)
    made.make_template(_migrate)
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_database(databases: Databases) -> Iterator[str]:
    """The database that most tests use, one after the other."""
    url = databases.clone()
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def shared_engine(shared_database: str) -> Iterator[Engine]:
    """Enough connections for every thread of a concurrency test."""
    engine = pooled_engine(sqlalchemy_url(shared_database), "notify-queue tests", 60)
    yield engine
    engine.dispose()


@pytest.fixture
def database_url(shared_database: str, shared_engine: Engine) -> Iterator[str]:
    """The shared database, empty."""
    yield shared_database
    # DELETE takes a fraction of what TRUNCATE does on tables this small.
    with shared_engine.begin() as connection:
        for table in _TABLES:
            connection.execute(text(f"DELETE FROM {table}"))


@pytest.fixture
def engine(database_url: str, shared_engine: Engine) -> Engine:
    """Connected to the empty shared database."""
    return shared_engine


@pytest.fixture
def unit_of_work(engine: Engine) -> UnitOfWorkFactory:
    """Units of work on the empty shared database."""
    return unit_of_work_factory(engine)


@pytest.fixture
def jobs(engine: Engine) -> Jobs:
    """Makes jobs in any state and looks at them."""
    return Jobs(engine)


@pytest.fixture
def events(engine: Engine) -> Events:
    """Makes webhook events in any state and looks at them."""
    return Events(engine)


@pytest.fixture
def processes(database_url: str, tmp_path: Path) -> Iterator[Processes]:
    """Starts the product's processes on the empty shared database, and ends them all."""
    with Processes(database_url, tmp_path) as started:
        yield started


def _migrate(url: str) -> None:
    engine = direct_engine(sqlalchemy_url(url), "notify-queue tests")
    upgrade(engine)
    engine.dispose()
