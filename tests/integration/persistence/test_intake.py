"""Jobs come in once per idempotency key, ledger and queue together."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from notify_queue.domain.fingerprint import fingerprint
from notify_queue.domain.job import NewJob, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.persistence.engine import pooled_engine
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from tests.support.jobs import Jobs, a_request
from tests.support.postgres import Databases, sqlalchemy_url


def a_new_job(**changes: Any) -> NewJob:
    request = a_request(**changes)
    return NewJob(new_id(), request, fingerprint(request), max_attempts=6)


def test_the_answer_is_the_row_that_was_written(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    new = a_new_job(priority=Priority.HIGH)
    with unit_of_work() as unit:
        written = unit.intake.insert(new)
        unit.commit()
    assert written is not None
    job, _ = written
    with unit_of_work() as unit:
        assert unit.reading.by_id(new.id) == job
    assert job.status is Status.PENDING
    assert jobs.one("SELECT payload->>'subject' FROM notification_jobs") == "hello"


def test_a_delay_counts_from_the_database_clock(unit_of_work: UnitOfWorkFactory) -> None:
    with unit_of_work() as unit:
        written = unit.intake.insert(a_new_job(delay_seconds=90))
    assert written is not None
    job, due_in_s = written
    assert job.scheduled_at - job.created_at == timedelta(seconds=90)
    assert due_in_s == 90


@pytest.mark.parametrize("year", [1, 1970, 2020, 9998])
def test_any_instant_is_stored_as_it_was_asked_for(
    unit_of_work: UnitOfWorkFactory, year: int
) -> None:
    instant = datetime(year, 3, 29, 1, 30, 0, 123_000, tzinfo=UTC)
    with unit_of_work() as unit:
        written = unit.intake.insert(a_new_job(send_at=instant))
    assert written is not None
    assert written[0].scheduled_at == instant


def test_a_taken_key_writes_nothing(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    first, second = a_new_job(idempotency_key="k"), a_new_job(idempotency_key="k")
    with unit_of_work() as unit:
        assert unit.intake.insert(first) is not None
        unit.commit()
    with unit_of_work() as unit:
        assert unit.intake.insert(second) is None
        found = unit.reading.by_key("k")
        unit.commit()
    assert found is not None
    assert found[0].id == first.id
    assert found[1] == first.fingerprint
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 1
    assert jobs.one("SELECT count(*) FROM job_queue") == 1


def test_a_job_never_comes_in_without_its_queue_entry(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    """A refused entry takes the ledger row with it: they are one statement."""
    with unit_of_work() as unit:
        unit._session.execute(
            text(
                "CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
            )
        )
        unit._session.execute(
            text(
                "CREATE TRIGGER refuse BEFORE INSERT ON job_queue"
                " FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse()"
            )
        )
        unit._session.execute(text("SAVEPOINT before"))
        with pytest.raises(Exception, match="refused"):
            unit.intake.insert(a_new_job())
        unit._session.execute(text("ROLLBACK TO SAVEPOINT before"))
        assert unit._session.scalar(text("SELECT count(*) FROM notification_jobs")) == 0
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 0


def test_payload_keys_and_numbers_survive_as_they_came(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    payload = {
        "__proto__": {"constructor": 1},
        "toString": [1, 1.5, True, None, 2**63 - 1, -(2**63)],
        "": {"é": "\\u0000 written out", "emoji": "\U0001f600"},
    }
    new = a_new_job(payload=payload)
    with unit_of_work() as unit:
        unit.intake.insert(new)
        unit.commit()
    assert jobs.one("SELECT payload FROM notification_jobs WHERE id = :id", id=new.id) == payload


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_the_zone_of_a_session_moves_no_instant(databases: Databases, zone: str) -> None:
    """Pitfall T3; west of Greenwich the year 1 would even come back as a year BC."""
    url = databases.clone()
    engine = pooled_engine(sqlalchemy_url(url), "zones", 1)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"ALTER DATABASE {engine.url.database} SET timezone = '{zone}'"))
    engine.dispose()
    instant = datetime(1, 1, 1, tzinfo=UTC)
    new = a_new_job(send_at=instant)
    with unit_of_work_factory(engine)() as unit:
        assert unit.intake.insert(new) is not None
        unit.commit()
    with unit_of_work_factory(engine)() as unit:
        found = unit.reading.by_id(new.id)
    engine.dispose()
    databases.drop(url)
    assert found is not None
    assert found.scheduled_at == instant
