"""Seeding adds the 24 examples, once, whatever happens to them."""

import pytest
import requests

from notify_queue.bootstrap import Container
from notify_queue.domain.examples import EXAMPLES
from notify_queue.settings import load
from tests.integration.scripts.runs import Scripts, to_end
from tests.support.jobs import Jobs
from tests.support.processes import Processes
from tests.support.waiting import until

FRESH = {"PENDING": 20, "SENT": 1, "FAILED": 1, "DEAD_LETTERED": 1, "CANCELLED": 1}
EVENTS = "SELECT array_agg(e::text ORDER BY id) FROM webhook_events e"
IDS = "SELECT array_agg(id::text ORDER BY idempotency_key) FROM notification_jobs"
# The moment of seeding: this one was created with it.
SEEDED_AT = "(SELECT created_at FROM notification_jobs WHERE idempotency_key = 'seed-immediate')"


def test_a_fresh_database_gets_the_24_examples(scripts: Scripts, jobs: Jobs) -> None:
    seeded = scripts.run("seed")
    assert (seeded.code, seeded.err) == (0, "")
    assert seeded.line == {"seeded": 24, "existing": 0, "statuses": FRESH}
    assert jobs.statuses() == FRESH
    assert jobs.one("SELECT count(*) FROM job_queue") == 20
    assert jobs.one("SELECT count(DISTINCT id) FROM notification_jobs") == 24


@pytest.mark.parametrize(
    ("key", "column", "value"),
    [
        ("seed-immediate", "next_attempt_at - seeded_at", "00:00:00"),
        ("seed-delayed", "next_attempt_at - seeded_at", "00:10:00"),
        ("seed-delayed", "scheduled_at - seeded_at", "00:10:00"),
        ("seed-retrying", "next_attempt_at - seeded_at", "00:00:30"),
        ("seed-retrying", "attempt_count", "2"),
        ("seed-retrying", "last_error", "Simulated provider outage"),
        ("seed-sent", "seeded_at - sent_at", "02:00:00"),
        ("seed-failed", "seeded_at - failed_at", "01:30:00"),
        ("seed-failed", "last_error", "Recipient rejected by provider"),
        ("seed-dead-lettered", "seeded_at - dead_lettered_at", "01:00:00"),
        ("seed-dead-lettered", "seeded_at - created_at", "03:00:00"),
        ("seed-dead-lettered", "attempt_count", "6"),
        ("seed-cancelled", "seeded_at - cancelled_at", "00:05:00"),
        ("seed-cancelled", "scheduled_at - seeded_at", "01:00:00"),
        ("seed-redriven", "status", "PENDING"),
        ("seed-redriven", "redrive_count", "1"),
        ("seed-redriven", "attempt_count", "0"),
        ("seed-redriven", "last_redriven_at - seeded_at", "00:00:00"),
        ("seed-redriven", "next_attempt_at - seeded_at", "00:00:00"),
        ("seed-redriven", "last_error", "Simulated provider outage"),
        ("seed-priority-high", "recipient", "+2348012345678"),
        ("seed-priority-high", "priority", "3"),
        ("seed-priority-low", "priority", "1"),
    ],
)
def test_an_example_stands_as_it_should(
    scripts: Scripts, jobs: Jobs, seeded: None, key: str, column: str, value: str
) -> None:
    found = f"""
        SELECT CAST({column} AS text)
          FROM (SELECT *, {SEEDED_AT} AS seeded_at FROM job_overview) each
         WHERE idempotency_key = :key
    """
    assert jobs.one(found, key=key) == value


@pytest.fixture
def seeded(database_url: str) -> None:
    container = Container(load({"DATABASE_URL": database_url}), "seed")
    container.seed()
    container.close()


def test_every_example_has_six_attempts_and_no_fingerprint(jobs: Jobs, seeded: None) -> None:
    assert jobs.one("SELECT count(request_fingerprint) FROM notification_jobs") == 0
    budgets = "SELECT array_agg(DISTINCT max_attempts) FROM {}"
    assert jobs.one(budgets.format("notification_jobs")) == [6]
    assert jobs.one(budgets.format("job_queue")) == [6]


def test_the_ledger_and_the_queue_agree(jobs: Jobs, seeded: None) -> None:
    different = """
        SELECT count(*) FROM notification_jobs j JOIN job_queue q ON q.job_id = j.id
         WHERE (q.priority, q.recipient, q.max_attempts, q.created_at)
               IS DISTINCT FROM (j.priority, j.recipient, j.max_attempts, j.created_at)
    """
    assert jobs.one(different) == 0
    # While a job lives its attempts are counted in the queue alone.
    attempts = "SELECT max(attempt_count) FROM notification_jobs WHERE outcome IS NULL"
    assert jobs.one(attempts) == 0


def test_again_after_every_bad_end_was_redriven_is_clean_and_the_same_24(
    scripts: Scripts, jobs: Jobs
) -> None:
    scripts.run("seed")
    ids, told = jobs.one(IDS), jobs.one(EVENTS)
    for status in ("DEAD_LETTERED", "FAILED"):
        assert scripts.run("redrive", "--status", status).line == {"redriven": 1, "remaining": 0}

    again = scripts.run("seed")
    assert (again.code, again.err) == (0, "")
    statuses = {"PENDING": 22, "SENT": 1, "CANCELLED": 1}
    assert again.line == {"seeded": 0, "existing": 24, "statuses": statuses}
    assert (jobs.one(IDS), jobs.one(EVENTS)) == (ids, told)
    assert jobs.one("SELECT count(*) FROM job_queue") == 22


def test_what_is_missing_is_added_and_the_rest_left_alone(
    scripts: Scripts, jobs: Jobs, seeded: None
) -> None:
    jobs.run("DELETE FROM notification_jobs WHERE idempotency_key LIKE 'seed-busy-%'")
    jobs.run("UPDATE notification_jobs SET last_error = 'mine' WHERE outcome = 'FAILED'")
    assert scripts.run("seed").line == {"seeded": 12, "existing": 12, "statuses": FRESH}
    assert jobs.one("SELECT last_error FROM notification_jobs WHERE outcome = 'FAILED'") == "mine"


def test_jobs_of_others_are_not_counted(scripts: Scripts, jobs: Jobs) -> None:
    jobs.add(3)
    assert scripts.run("seed").line == {"seeded": 24, "existing": 0, "statuses": FRESH}


def test_a_limit_adds_the_first_of_them(scripts: Scripts, jobs: Jobs) -> None:
    assert scripts.run("seed", "--limit", "3").line == {
        "seeded": 3,
        "existing": 0,
        "statuses": {"PENDING": 3},
    }
    assert scripts.run("seed", "--limit", "4").line["seeded"] == 1
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 4


def test_a_dry_run_adds_nothing_and_says_what_a_run_would_add(scripts: Scripts, jobs: Jobs) -> None:
    dry = scripts.run("seed", "--dry-run")
    assert dry.line == {"seeded": 0, "existing": 0, "missing": 24, "statuses": {}}
    assert jobs.statuses() == {}


def test_a_dry_run_keeps_to_the_limit(scripts: Scripts, jobs: Jobs, seeded: None) -> None:
    first = EXAMPLES[0].key
    jobs.run("DELETE FROM notification_jobs WHERE idempotency_key = :key", key=first)
    dry = scripts.run("seed", "--dry-run", "--limit", "3")
    assert dry.line == {
        "seeded": 0,
        "existing": 2,
        "missing": 1,
        "statuses": {**FRESH, "PENDING": 19},
    }
    assert scripts.run("seed", "--limit", "3").line["seeded"] == 1


def test_two_at_once_add_each_example_once(scripts: Scripts, jobs: Jobs) -> None:
    both = [to_end(running) for running in [scripts.start("seed"), scripts.start("seed")]]
    assert [each.code for each in both] == [0, 0]
    assert sorted(each.line["seeded"] for each in both) == [0, 24]
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 24


def test_seeding_while_workers_deliver(scripts: Scripts, processes: Processes, jobs: Jobs) -> None:
    workers = [processes.running("worker", MOCK_FAILURE_RATE=0) for _ in range(2)]
    assert [scripts.run("seed").code for _ in range(3)] == [0, 0, 0]
    # All but the two that are due later, and two of the twelve for one recipient, which exceed its
    # ten an hour; one recipient is refused.
    delivered = {"SENT": 16, "FAILED": 2, "PENDING": 4, "DEAD_LETTERED": 1, "CANCELLED": 1}
    until(lambda: jobs.statuses() == delivered, "what is due to be delivered")
    assert scripts.run("seed").line["existing"] == 24
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 15
    assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 2
    assert [worker.stop() for worker in workers] == [0, 0]


def test_a_replay_of_an_examples_key_is_answered_with_the_example(
    processes: Processes, seeded: None
) -> None:
    api = processes.running("api")
    body = {
        "recipient": "somebody@example.com",
        "channel": "EMAIL",
        "priority": "LOW",
        "payload": {},
        "delaySeconds": 5,
        "idempotencyKey": "seed-sent",
    }
    answer = requests.post(f"{api.url}/notifications", json=body, timeout=10)
    assert answer.status_code == 200
    assert answer.json()["status"] == "SENT"


def test_it_says_nothing_of_recipients_and_keys(scripts: Scripts) -> None:
    said = [scripts.run("seed", LOG_LEVEL="trace") for _ in range(2)]
    text = "".join(each.out + each.err for each in said)
    private = {example.recipient for example in EXAMPLES} | {example.key for example in EXAMPLES}
    assert [word for word in private if word in text] == []


def test_four_examples_have_been_told(scripts: Scripts, jobs: Jobs, seeded: None) -> None:
    told = jobs.one(
        "SELECT array_agg(concat_ws(' ', idempotency_key, status, e.attempt_count,"
        " e.redrive_count) ORDER BY idempotency_key)"
        " FROM webhook_events e JOIN notification_jobs j ON j.id = job_id"
        " WHERE delivered_at IS NOT NULL"
    )
    assert told == [
        "seed-dead-lettered DEAD_LETTERED 6 0",
        "seed-failed FAILED 1 0",
        "seed-redriven DEAD_LETTERED 6 0",
        "seed-sent SENT 1 0",
    ]
    assert jobs.one("SELECT count(*) FROM webhook_events") == 4
    # After the job began, when it ended or before it was redriven, and told later still.
    assert jobs.one(
        "SELECT bool_and(occurred_at > j.created_at AND occurred_at < delivered_at"
        " AND occurred_at = coalesce(j.ended_at, occurred_at)"
        " AND delivered_at < coalesce(j.last_redriven_at, now())"
        " AND e.created_at = occurred_at AND dispatch_attempts = 1)"
        " FROM webhook_events e JOIN notification_jobs j ON j.id = job_id"
    )


def test_seeding_again_tells_nothing_of_what_has_become_of_them(
    scripts: Scripts, jobs: Jobs, seeded: None
) -> None:
    before = jobs.one(EVENTS)
    jobs.run(
        "UPDATE notification_jobs SET outcome = 'SENT', last_error = NULL, redrive_count = 1,"
        " last_redriven_at = now() WHERE idempotency_key = 'seed-failed'"
    )
    assert scripts.run("seed").line["seeded"] == 0
    assert jobs.one(EVENTS) == before
