"""The tables of the webhooks come and go beside jobs that have ended."""

from alembic import command
from sqlalchemy import Engine

from notify_queue.persistence import schema
from notify_queue.persistence.engine import direct_engine
from tests.support.events import Events
from tests.support.jobs import Jobs
from tests.support.postgres import sqlalchemy_url

BEFORE = "0008_parked_jobs"
# What workers of the release before write when a job ends.
_END = (
    "WITH gone AS (DELETE FROM job_queue RETURNING job_id)"
    " UPDATE notification_jobs SET outcome = 'SENT', ended_at = now(), attempt_count = 1"
    " FROM gone WHERE id = job_id"
)


def definitions(jobs: Jobs) -> str:
    """Everything that these migrations make, as the server tells it."""
    return str(
        jobs.one(
            """
            WITH made (id) AS (VALUES ('webhook_events'::regclass),
                                      ('mock_webhook_receipts'::regclass))
            SELECT string_agg(definition, E'\n' ORDER BY definition) FROM (
                SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN made ON id = indrelid
                UNION ALL SELECT conname || pg_get_constraintdef(oid)
                  FROM pg_constraint JOIN made ON id = conrelid
                UNION ALL SELECT concat_ws(' ', attrelid::regclass, attname, attnotnull,
                                           format_type(atttypid, atttypmod))
                  FROM pg_attribute JOIN made ON id = attrelid WHERE attnum > 0
                UNION ALL SELECT array_to_string(reloptions, ' ')
                  FROM pg_class JOIN made ON made.id = oid) AS told (definition)
            """
        )
    )


def test_jobs_stay_and_events_come_and_go(url: str, engine: Engine) -> None:
    jobs, events = Jobs(engine), Events(engine)
    jobs.add()
    jobs.run(_END)
    schema.upgrade(direct_engine(sqlalchemy_url(url), "up"))
    # Nobody was waiting to be told of what had ended before.
    assert events.count("true") == 0
    jobs.add()
    jobs.run(_END)
    events.add()
    made = definitions(jobs)
    with direct_engine(sqlalchemy_url(url), "down").connect() as connection:
        command.downgrade(schema._config(schema._transactional(connection)), BEFORE)
    assert jobs.statuses() == {"SENT": 3}
    schema.upgrade(direct_engine(sqlalchemy_url(url), "up again"))
    assert definitions(jobs) == made
    assert events.count("true") == 0
