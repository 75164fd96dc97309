"""The tables of the limit come and go under a queue that is full of jobs."""

import pytest
from alembic import command
from sqlalchemy import Engine

from notify_queue.persistence import schema
from notify_queue.persistence.engine import direct_engine
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.limited import Limited
from tests.support.postgres import sqlalchemy_url

BEFORE = "0006_cursor_key"
A = "a@example.com"


@pytest.fixture
def jobs(engine: Engine) -> Jobs:
    return Jobs(engine)


def upgrade(url: str) -> None:
    schema.upgrade(direct_engine(sqlalchemy_url(url), "up"))


def downgrade(url: str, version: str = BEFORE) -> None:
    with direct_engine(sqlalchemy_url(url), "down").connect() as connection:
        command.downgrade(schema._config(schema._transactional(connection)), version)


def columns_of(jobs: Jobs, relation: str) -> str:
    return str(
        jobs.one(
            "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', '"
            " ORDER BY attname) FROM pg_attribute"
            " WHERE attrelid = CAST(:relation AS regclass) AND attnum > 0 AND NOT attisdropped",
            relation=relation,
        )
    )


def definitions(jobs: Jobs) -> str:
    """Everything that these migrations touch, as the server tells it."""
    return str(
        jobs.one(
            """
            SELECT string_agg(definition, E'\n' ORDER BY definition) FROM (
                SELECT pg_get_indexdef(indexrelid) FROM pg_index
                 WHERE indrelid = 'job_queue'::regclass
                UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint
                 WHERE conrelid = 'job_queue'::regclass
                UNION ALL SELECT pg_get_viewdef('job_overview'::regclass)) AS told (definition)
            """
        )
    ) + columns_of(jobs, "job_queue")


def test_jobs_that_wait_or_run_stay_as_they_are_on_the_way_up(url: str, jobs: Jobs) -> None:
    [waits] = jobs.add()
    [runs] = jobs.add()
    [flagged] = jobs.add(recipient=A)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'w',"
        " locked_at = now(), attempt_count = 1 WHERE job_id = :id",
        id=runs,
    )
    # Nobody parked jobs before, but the column was there.
    jobs.run("UPDATE job_queue SET rate_limited = true WHERE job_id = :id", id=flagged)
    before = {job_id: jobs.row(job_id) for job_id in (waits, runs, flagged)}
    upgrade(url)
    before[flagged]["rate_limited"] = False
    assert {job_id: jobs.row(job_id) for job_id in before} == before


def test_workers_of_the_release_before_go_on_while_the_new_schema_is_there(
    url: str, jobs: Jobs
) -> None:
    """They name none of the new columns, and what they write meets the new constraints."""
    jobs.add(3)
    upgrade(url)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'old',"
        " locked_at = now(), attempt_count = attempt_count + 1"
    )
    jobs.run("DELETE FROM job_queue")
    jobs.run("UPDATE notification_jobs SET outcome = 'SENT', ended_at = now(), attempt_count = 1")
    assert jobs.statuses() == {"SENT": 3}


def test_parked_jobs_wait_for_nothing_any_more_on_the_way_down(
    url: str, jobs: Jobs, engine: Engine
) -> None:
    before = definitions(jobs)
    upgrade(url)
    two = Limited(unit_of_work_factory(engine), 2)
    jobs.add(5, recipient=A)
    assert len(two.send()) == 2
    assert two.claim() == []
    downgrade(url)
    assert jobs.statuses() == {"SENT": 2, "PENDING": 3}
    assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 0
    assert jobs.one("SELECT bool_and(next_attempt_at <= now()) FROM job_overview") is True
    assert definitions(jobs) == before
    upgrade(url)
    # What was sent before is not known any more.
    assert len(two.claim()) == 2


def test_the_constraints_are_checked_for_the_rows_of_before_too(url: str, jobs: Jobs) -> None:
    upgrade(url)
    assert (
        jobs.one("SELECT string_agg(conname, ', ') FROM pg_constraint WHERE NOT convalidated")
        is None
    )


def test_an_index_build_that_was_interrupted_is_simply_made_again(url: str, jobs: Jobs) -> None:
    upgrade(url)
    after = definitions(jobs)
    downgrade(url, "0007_rate_limit")
    jobs.run("DROP INDEX idx_job_queue_parked")
    jobs.run("CREATE INDEX idx_job_queue_parked ON job_queue (gate)")
    upgrade(url)
    assert definitions(jobs) == after


def test_the_view_shows_when_a_parked_job_may_go(url: str, jobs: Jobs) -> None:
    before = columns_of(jobs, "job_overview")
    upgrade(url)
    parked, waits = jobs.add(2, recipient=A)
    jobs.park(parked)
    opens_at = jobs.one("SELECT opens_at FROM rate_limit_gates")
    assert jobs.row(parked)["next_attempt_at"] == opens_at
    assert jobs.row(waits)["next_attempt_at"] < opens_at
    assert columns_of(jobs, "job_overview") == before
