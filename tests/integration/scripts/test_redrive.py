"""Redriving by hand puts back what was asked for, each job once, no faster than told."""

import signal

import pytest
from sqlalchemy import Engine, text

from tests.integration.scripts.runs import MARKED, Scripts, ended_badly, to_end
from tests.support.jobs import Jobs
from tests.support.waiting import until

# From the oldest: how many jobs went back in each transaction.
BATCHES = """
    SELECT array_agg(jobs ORDER BY last_redriven_at)
      FROM (SELECT last_redriven_at, count(*)::int AS jobs FROM notification_jobs
             WHERE redrive_count > 0 GROUP BY last_redriven_at) batches
"""
# Every job that comes into the queue ends badly at once, as with a broken provider.
ENDS_AT_ONCE = """
    CREATE FUNCTION end_badly() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM job_queue WHERE job_id = NEW.job_id;
        UPDATE notification_jobs SET outcome = 'DEAD_LETTERED', ended_at = clock_timestamp()
         WHERE id = NEW.job_id;
        RETURN NULL;
    END $$;
    CREATE TRIGGER end_badly AFTER INSERT ON job_queue
        FOR EACH ROW EXECUTE FUNCTION end_badly();
"""


def test_until_none_remain(scripts: Scripts, jobs: Jobs) -> None:
    added = ended_badly(jobs, 501)
    failed = ended_badly(jobs, 1, "FAILED")
    done = scripts.run("redrive", "--pause", "0")
    assert done.code == 0
    assert done.line == {"redriven": 501, "remaining": 0}
    assert jobs.statuses() == {"PENDING": 501, "FAILED": 1}
    assert jobs.row(failed[0])["redrive_count"] == 0
    row = jobs.row(added[0])
    assert (row["redrive_count"], row["attempt_count"], row["max_attempts"]) == (1, 0, 6)

    (line,) = done.logged("jobs.redriven")
    said = {name: line[name] for name in ("status", "byRecipient", "retried", "remaining")}
    assert said == {
        "status": "DEAD_LETTERED",
        "byRecipient": False,
        "retried": 501,
        "remaining": 0,
    }
    assert "reason" not in line
    assert len(done.logged("job.redriven")) == 501
    assert MARKED not in done.out + done.err


def test_only_what_was_selected(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 1, "FAILED", recipient="somebody@example.com")
    ended_badly(jobs, 1, "DEAD_LETTERED")
    old, new = ended_badly(jobs, 2, "FAILED")
    jobs.run(
        "UPDATE notification_jobs SET ended_at = '2026-01-31T09:30:00Z' WHERE id = :id", id=new
    )
    jobs.run(
        "UPDATE notification_jobs SET ended_at = '2026-01-31T09:29:59.999Z' WHERE id = :id", id=old
    )
    jobs.run(
        "UPDATE notification_jobs SET ended_at = '2026-01-01T00:00:00Z' WHERE id <> ALL(:ids)",
        ids=[old, new],
    )
    selected = ["--status", "FAILED", "--recipient", MARKED]
    since = ["--since", "2026-01-31T10:30:00+01:00"]

    done = scripts.run("redrive", *selected, *since)
    assert done.line == {"redriven": 1, "remaining": 0}
    assert jobs.row(new)["status"] == "PENDING"
    assert jobs.statuses() == {"PENDING": 1, "FAILED": 2, "DEAD_LETTERED": 1}
    assert scripts.run("redrive", *selected).line == {"redriven": 1, "remaining": 0}
    assert jobs.row(old)["status"] == "PENDING"
    assert done.logged("jobs.redriven")[0]["byRecipient"] is True
    assert MARKED not in done.out + done.err


def test_a_limit_takes_the_oldest(scripts: Scripts, jobs: Jobs) -> None:
    added = ended_badly(jobs, 5)
    assert scripts.run("redrive", "--limit", "3").line == {"redriven": 3, "remaining": 2}
    back = [job_id for job_id in added if jobs.row(job_id)["status"] == "PENDING"]
    assert back == added[:3]


def test_a_dry_run_counts_and_changes_nothing(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 5)
    done = scripts.run("redrive", "--dry-run", "--rate", "1")
    assert done.line == {"redriven": 0, "remaining": 5}
    assert jobs.statuses() == {"DEAD_LETTERED": 5}
    assert done.err == ""


def test_a_rate_bounds_every_batch(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 5)
    assert scripts.run("redrive", "--rate", "4").line == {"redriven": 5, "remaining": 0}
    assert jobs.one(BATCHES) == [4, 1]


def test_a_job_that_ends_badly_again_is_redriven_once_in_a_run(
    scripts: Scripts, jobs: Jobs
) -> None:
    ended_badly(jobs, 3)
    jobs.run(ENDS_AT_ONCE)
    try:
        done = scripts.run("redrive", "--rate", "2")
    finally:
        jobs.run("DROP TRIGGER end_badly ON job_queue; DROP FUNCTION end_badly()")
    assert done.line == {"redriven": 3, "remaining": 3}
    assert jobs.one("SELECT array_agg(redrive_count) FROM notification_jobs") == [1, 1, 1]
    assert jobs.one(BATCHES) == [2, 1]


def test_what_was_locked_for_a_moment_is_taken_later(
    scripts: Scripts, jobs: Jobs, engine: Engine
) -> None:
    added = ended_badly(jobs, 5)
    held = text("SELECT 1 FROM notification_jobs WHERE id = ANY(:ids) FOR UPDATE")
    with engine.begin() as connection:
        connection.execute(held, {"ids": added[:2]})
        running = scripts.start("redrive", "--rate", "3", "--pause", "3")
        until(lambda: jobs.statuses().get("PENDING"), "the first batch")
        assert {jobs.row(each)["status"] for each in added[:2]} == {"DEAD_LETTERED"}
    assert to_end(running).line == {"redriven": 5, "remaining": 0}
    assert jobs.one(BATCHES) == [3, 2]


def test_what_stays_locked_is_left_and_counted(
    scripts: Scripts, jobs: Jobs, engine: Engine
) -> None:
    added = ended_badly(jobs, 3)
    held = text("SELECT 1 FROM notification_jobs WHERE id = :id FOR UPDATE")
    with engine.begin() as connection:
        connection.execute(held, {"id": added[0]})
        assert scripts.run("redrive").line == {"redriven": 2, "remaining": 1}


def test_a_run_that_fails_says_what_it_has_done_and_why_it_was_started(
    scripts: Scripts, jobs: Jobs
) -> None:
    ended_badly(jobs, 2)
    ended_badly(jobs, 1, recipient="refused@example.com")
    jobs.run("UPDATE notification_jobs SET created_at = now() WHERE recipient LIKE 'refused%'")
    refused = "ADD CONSTRAINT never CHECK (recipient <> 'refused@example.com')"
    jobs.run(f"ALTER TABLE job_queue {refused}")
    try:
        failed = scripts.run("redrive", "--rate", "2", "--reason", "provider is back")
    finally:
        jobs.run("ALTER TABLE job_queue DROP CONSTRAINT never")
    assert failed.code == 1
    assert failed.line == {"redriven": 2, "failed": True}
    assert "What was done stays done; start again for the rest." in failed.err
    assert jobs.statuses() == {"PENDING": 2, "DEAD_LETTERED": 1}
    said = [line["reason"] for line in failed.logged("job.redriven")]
    assert said == ["provider is back"] * 2


def test_several_at_once_share_the_jobs(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 40)
    running = [scripts.start("redrive", "--limit", "30") for _ in range(2)]
    redriven = [to_end(each).line["redriven"] for each in running]
    assert sum(redriven) == 40
    assert jobs.one("SELECT max(redrive_count) FROM notification_jobs") == 1


def test_the_reason_goes_into_the_log_on_one_line_and_without_the_recipient(
    scripts: Scripts, jobs: Jobs
) -> None:
    ended_badly(jobs, 1)
    reason = f"provider is back\r\n{MARKED} asked" + "x" * 500
    done = scripts.run("redrive", "--recipient", MARKED, "--reason", reason)
    for event in ("job.redriven", "jobs.redriven"):
        (line,) = done.logged(event)
        assert line["reason"].startswith("provider is back [recipient] askedxxx")
        assert len(line["reason"]) == 200
    assert MARKED not in done.out + done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_after_the_batch(
    scripts: Scripts, jobs: Jobs, number: signal.Signals
) -> None:
    ended_badly(jobs, 5)
    running = scripts.start("redrive", "--rate", "2", "--pause", "600")
    until(lambda: jobs.statuses().get("PENDING"), "the first batch")
    done = to_end(running, number)
    assert done.code == 128 + number
    assert done.line == {"redriven": 2, "remaining": 3, "interrupted": True}
    assert done.logged("jobs.redriven")[0]["retried"] == 2
    assert jobs.statuses() == {"PENDING": 2, "DEAD_LETTERED": 3}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--status", MARKED], "--status"),
        ([f"--status={MARKED}"], "--status"),
        ([f"--dry-run={MARKED}"], "--dry-run"),
        (["--since", "2026-01-31"], "--since"),
        (["--rate", "0"], "--rate"),
        (["--limit", "none"], "--limit"),
        (["--recipent", MARKED], "--recipent"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_done(
    scripts: Scripts, jobs: Jobs, options: list[str], named: str
) -> None:
    ended_badly(jobs, 1)
    done = scripts.run("redrive", *options)
    assert (done.code, done.out) == (2, "")
    assert f" {named}" in done.err.splitlines()[-1]
    assert MARKED not in done.err
    assert jobs.statuses() == {"DEAD_LETTERED": 1}
