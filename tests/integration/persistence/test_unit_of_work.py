"""One transaction per use: rolled back by default, never shared, never held over a call."""

import threading
from uuid import uuid4

import gevent
import pytest
from sqlalchemy import Engine, text

from notify_queue.persistence.engine import pooled_engine
from notify_queue.persistence.unit_of_work import (
    OpenUnitOfWorkError,
    UnitOfWorkFactory,
    refuse_open_unit_of_work,
    unit_of_work_factory,
)
from tests.support.jobs import Jobs
from tests.support.postgres import sqlalchemy_url

ROW = {"delivery_key": "k", "recipient": "r", "channel": "SMS"}
COUNT = "SELECT count(*) FROM mock_provider_deliveries"


def test_uncommitted_work_is_rolled_back(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    with unit_of_work() as unit:
        unit.mock_records.accept([ROW])
    assert jobs.one(COUNT) == 0


def test_an_error_rolls_back(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    with pytest.raises(KeyError), unit_of_work() as unit:
        unit.mock_records.accept([ROW])
        raise KeyError
    assert jobs.one(COUNT) == 0


def test_committed_work_stays(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    with unit_of_work() as unit:
        unit.mock_records.accept([ROW])
        unit.commit()
    assert jobs.one(COUNT) == 1


@pytest.mark.parametrize("interruption", [gevent.Timeout, gevent.GreenletExit, KeyboardInterrupt])
def test_a_connection_interrupted_in_mid_work_is_thrown_away(
    database_url: str, jobs: Jobs, interruption: type[BaseException]
) -> None:
    """Pitfall G1: the next user of the pool slot must not inherit a half-done transaction."""
    engine = pooled_engine(sqlalchemy_url(database_url), "one connection", 1)
    units = unit_of_work_factory(engine)
    with pytest.raises(interruption), units() as unit:
        first = unit._session.scalar(text("SELECT pg_backend_pid()"))
        unit.mock_records.accept([ROW])
        raise interruption
    with units() as unit:
        second = unit._session.scalar(text("SELECT pg_backend_pid()"))
        unit.commit()
    engine.dispose()
    assert first != second
    assert jobs.one(COUNT) == 0


def test_two_units_have_two_transactions(unit_of_work: UnitOfWorkFactory) -> None:
    with unit_of_work() as first, unit_of_work() as second:
        backends = {
            unit._session.scalar(text("SELECT pg_backend_pid()")) for unit in (first, second)
        }
    assert len(backends) == 2


def test_a_network_call_is_refused_while_a_unit_is_open(unit_of_work: UnitOfWorkFactory) -> None:
    refuse_open_unit_of_work("a call")
    with unit_of_work(), pytest.raises(OpenUnitOfWorkError, match="a call"):
        refuse_open_unit_of_work("a call")
    refuse_open_unit_of_work("a call")


def test_a_unit_open_in_one_greenlet_does_not_hinder_another(
    unit_of_work: UnitOfWorkFactory,
) -> None:
    with unit_of_work():
        other = gevent.spawn(refuse_open_unit_of_work, "a call")
        other.join()
        other.get()


def test_every_transaction_has_deadlines_and_reads_what_is_committed(
    database_url: str, engine: Engine
) -> None:
    """Whatever the database's own defaults are."""
    name = engine.url.database
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(
            text(f'ALTER DATABASE "{name}" SET default_transaction_isolation = "serializable"')
        )
    mine = pooled_engine(sqlalchemy_url(database_url), "isolation", 1)
    try:
        with unit_of_work_factory(mine)() as unit:
            shown = {
                setting: unit._session.scalar(text(f"SHOW {setting}"))
                for setting in (
                    "transaction_isolation",
                    "statement_timeout",
                    "lock_timeout",
                    "idle_in_transaction_session_timeout",
                )
            }
    finally:
        mine.dispose()
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f'ALTER DATABASE "{name}" RESET default_transaction_isolation'))
    assert shown == {
        "transaction_isolation": "read committed",
        "statement_timeout": "5s",
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "10s",
    }


def test_deadlines_do_not_outlive_the_transaction(engine: Engine) -> None:
    """Behind a pooler in transaction mode a session setting would reach a stranger."""
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        connection.execute(text("SELECT 1"))
        connection.commit()
        with driver.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("0",)
        driver.rollback()


def test_threads_share_an_engine_and_no_transaction(unit_of_work: UnitOfWorkFactory) -> None:
    seen: list[int] = []
    together = threading.Barrier(5)

    def use() -> None:
        with unit_of_work() as unit:
            seen.append(unit._session.scalar(text("SELECT pg_backend_pid()")) or 0)
            unit.mock_records.accept([{**ROW, "delivery_key": str(uuid4())}])
            together.wait(10)

    threads = [threading.Thread(target=use) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 5
