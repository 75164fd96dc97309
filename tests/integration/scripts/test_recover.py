"""Recovery by hand takes expired claims back, all or as many as it is told to."""

import signal

import pytest

from tests.integration.scripts.runs import MARKED, Scripts, claimed_long_ago, to_end
from tests.support.jobs import Jobs
from tests.support.waiting import until

PASS = 500
NO_MORE_ENDS = """
    CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING ERRCODE = 'admin_shutdown'; END $$;
    CREATE TRIGGER never BEFORE DELETE ON job_queue FOR EACH ROW EXECUTE FUNCTION never();
"""


def test_every_expired_claim_is_taken_back_and_no_other(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, PASS + 1)
    claimed_long_ago(jobs, 2, attempts=6, granted=True)
    held = claimed_long_ago(jobs, 3)
    jobs.run("UPDATE job_queue SET locked_at = now() WHERE job_id = ANY(:ids)", ids=held)

    done = scripts.run("recover", "--pause", "0")
    assert done.code == 0
    assert done.line == {"requeued": PASS + 1, "deadLettered": 2, "remaining": 0}
    assert jobs.statuses() == {"PENDING": PASS + 1, "DEAD_LETTERED": 2, "PROCESSING": 3}
    assert len(done.logged("jobs.recovered")) == 2
    assert len(done.logged("job.dead_letter")) == 2
    assert MARKED not in done.out + done.err


@pytest.mark.parametrize(("most", "slots"), [("", 2), ("0", 0)])
def test_what_is_taken_back_holds_slots_if_there_is_a_limit(
    scripts: Scripts, jobs: Jobs, most: str, slots: int
) -> None:
    """Nobody knows whether the providers were called."""
    claimed_long_ago(jobs, 1)
    claimed_long_ago(jobs, 1, attempts=6, granted=True)
    done = scripts.run("recover", RATE_LIMIT_MAX_NOTIFICATIONS=most)
    assert done.line == {"requeued": 1, "deadLettered": 1, "remaining": 0}
    assert jobs.one("SELECT count(*) FROM rate_limit_reservations") == slots


def test_once_is_one_pass(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, PASS + 1)
    line = scripts.run("recover", "--once").line
    assert line == {"requeued": PASS, "deadLettered": 0, "remaining": 1}


def test_a_limit_holds(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, 5)
    line = scripts.run("recover", "--limit", "3").line
    assert line == {"requeued": 3, "deadLettered": 0, "remaining": 2}
    assert jobs.statuses() == {"PENDING": 3, "PROCESSING": 2}


def test_a_dry_run_counts_and_changes_nothing(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, 5)
    done = scripts.run("recover", "--dry-run")
    assert done.line == {"requeued": 0, "deadLettered": 0, "remaining": 5}
    assert jobs.statuses() == {"PROCESSING": 5}
    assert done.err == ""


def test_how_long_a_claim_is_good_for_is_a_setting(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, 1)
    longer = {"JOB_VISIBILITY_TIMEOUT_SECONDS": "7200"}
    assert scripts.run("recover", **longer).line["requeued"] == 0
    assert scripts.run("recover").line["requeued"] == 1


def test_one_that_cannot_be_written_does_not_end_the_run(scripts: Scripts, jobs: Jobs) -> None:
    first = claimed_long_ago(jobs, PASS + 1)[0]
    jobs.run("UPDATE job_queue SET locked_at = '2020-01-01Z' WHERE job_id = :id", id=first)
    refused = f"CHECK (job_id <> '{first}' OR claim_token IS NOT NULL)"
    jobs.run(f"ALTER TABLE job_queue ADD CONSTRAINT kept {refused}")
    try:
        done = scripts.run("recover", "--pause", "0")
    finally:
        jobs.run("ALTER TABLE job_queue DROP CONSTRAINT kept")
    assert done.code == 0
    assert done.line == {"requeued": PASS, "deadLettered": 0, "remaining": 1}


def test_a_run_that_fails_says_what_it_has_done(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, PASS)
    jobs.run("UPDATE job_queue SET locked_at = locked_at - interval '1 min'")
    claimed_long_ago(jobs, 1, attempts=6, granted=True)
    # Only the second pass ends a job.
    jobs.run(NO_MORE_ENDS)
    try:
        failed = scripts.run("recover", "--pause", "0")
    finally:
        jobs.run("DROP TRIGGER never ON job_queue; DROP FUNCTION never()")
    assert failed.code == 1
    assert failed.line == {"requeued": PASS, "deadLettered": 0, "failed": True}
    assert len(failed.logged("job.recovered")) == PASS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_between_two_passes(
    scripts: Scripts, jobs: Jobs, number: signal.Signals
) -> None:
    claimed_long_ago(jobs, PASS + 1)
    running = scripts.start("recover", "--pause", "600")
    until(lambda: jobs.statuses().get("PENDING"), "the first pass")
    done = to_end(running, number)
    assert done.code == 128 + number
    assert done.line == {"requeued": PASS, "deadLettered": 0, "remaining": 1, "interrupted": True}
