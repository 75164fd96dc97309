"""What the tables of the limit refuse, whoever writes."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs
from tests.support.limited import Limited

A = "a@example.com"


@pytest.fixture
def with_a_gate(jobs: Jobs) -> None:
    """Two jobs of A, one of which is parked."""
    [parked, _] = jobs.add(2, recipient=A)
    jobs.park(parked)


@pytest.mark.usefixtures("with_a_gate")
@pytest.mark.parametrize(
    "statement",
    [
        # Parked and its gate: both or neither, and no other recipient's.
        "UPDATE job_queue SET rate_limited = true WHERE NOT rate_limited",
        "UPDATE job_queue SET gate = recipient WHERE NOT rate_limited",
        "UPDATE job_queue SET gate = NULL WHERE rate_limited",
        "UPDATE job_queue SET rate_limited = false WHERE rate_limited",
        "UPDATE job_queue SET recipient = 'b@example.com' WHERE rate_limited",
        "UPDATE job_queue SET recipient = 'b@example.com', gate = 'b@example.com'"
        " WHERE rate_limited",
        # Who is claimed is not parked.
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'w',"
        " locked_at = now(), attempt_count = 1 WHERE rate_limited",
        # A gate with parked jobs stays, under its name.
        "DELETE FROM rate_limit_gates",
        "UPDATE rate_limit_gates SET recipient = 'b@example.com'",
        "UPDATE rate_limit_gates SET priority = 4",
        "UPDATE rate_limit_gates SET max_notifications = 0",
        "UPDATE rate_limit_gates SET window_seconds = 0",
        "UPDATE rate_limit_gates SET opens_at = NULL",
        # A slot is of a job that there is, and of each only one.
        "INSERT INTO rate_limit_reservations VALUES (gen_random_uuid(), 'a@example.com')",
        "INSERT INTO rate_limit_reservations"
        " SELECT job_id, recipient FROM job_queue CROSS JOIN generate_series(1, 2)",
    ],
)
def test_what_must_not_be_cannot_be_written(engine: Engine, statement: str) -> None:
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(text(statement))


def test_a_job_cannot_be_parked_at_a_gate_that_is_not_there(jobs: Jobs, engine: Engine) -> None:
    jobs.add(recipient=A)
    with pytest.raises(IntegrityError, match="fk_job_queue_gate"), engine.begin() as connection:
        connection.execute(text("UPDATE job_queue SET rate_limited = true, gate = recipient"))


def test_a_slot_goes_with_its_notification(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    [job_id] = jobs.add(recipient=A)
    Limited(unit_of_work, 1).send()
    assert jobs.one("SELECT job_id FROM rate_limit_reservations") == job_id
    jobs.run("DELETE FROM notification_jobs")
    assert jobs.one("SELECT count(*) FROM rate_limit_reservations") == 0
