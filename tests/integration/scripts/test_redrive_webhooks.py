"""Reviving webhook events by hand: what was given up is put back, each event once."""

import pytest

from tests.integration.scripts.runs import Scripts
from tests.support.events import Events
from tests.support.jobs import Jobs

_GIVE_UP = (
    "UPDATE webhook_events SET dispatch_attempts = 10, last_error = 'HTTP 500',"
    " failed_at = now() - interval '{} minutes' WHERE failed_at IS NULL"
)
# Every event that is revived is given up again at once, as with a receiver that is still down.
_AGAIN = """
    CREATE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.failed_at = clock_timestamp();
        RETURN NEW;
    END $$;
    CREATE TRIGGER give_up BEFORE UPDATE ON webhook_events
        FOR EACH ROW WHEN (OLD.failed_at IS NOT NULL) EXECUTE FUNCTION give_up();
"""


@pytest.fixture
def given_up(events: Events, jobs: Jobs) -> Events:
    """501 events given up an hour ago, and two just now."""
    events.add(501)
    jobs.run(_GIVE_UP.format(60))
    events.add(2)
    jobs.run(_GIVE_UP.format(1))
    return events


def test_until_none_remain(scripts: Scripts, given_up: Events) -> None:
    done = scripts.run("redrive", "--webhooks", "--pause", "0", "--reason", "it is back")
    assert (done.code, done.line) == (0, {"redriven": 503, "remaining": 0})
    assert given_up.count("failed_at IS NULL AND forgiven_attempts = 10") == 503
    [line] = done.logged("webhooks.revived")
    assert (line["revived"], line["remaining"], line["reason"]) == (503, 0, "it is back")


def test_only_what_was_selected(scripts: Scripts, given_up: Events, jobs: Jobs) -> None:
    since = jobs.one(
        """SELECT to_char(now() - interval '5 minutes', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
    )
    counted = scripts.run("redrive", "--webhooks", "--since", since, "--dry-run")
    assert counted.line == {"redriven": 0, "remaining": 2}
    assert given_up.count("failed_at IS NULL") == 0
    assert scripts.run("redrive", "--webhooks", "--since", since).line["redriven"] == 2
    limited = scripts.run("redrive", "--webhooks", "--limit", "7")
    assert limited.line == {"redriven": 7, "remaining": 494}


def test_each_once_though_it_is_given_up_again_at_once(
    scripts: Scripts, given_up: Events, jobs: Jobs
) -> None:
    jobs.run(_AGAIN)
    try:
        done = scripts.run("redrive", "--webhooks", "--pause", "0")
    finally:
        jobs.run("DROP FUNCTION give_up() CASCADE")
    assert done.line == {"redriven": 503, "remaining": 503}


@pytest.mark.parametrize("options", [("--status", "FAILED"), ("--recipient", "a@example.com")])
def test_what_is_said_of_jobs_is_refused(
    scripts: Scripts, given_up: Events, options: tuple[str, str]
) -> None:
    refused = scripts.run("redrive", "--webhooks", *options)
    assert (refused.code, refused.out) == (2, "")
    assert "--webhooks: not together with --status or --recipient" in refused.err
    assert given_up.count("failed_at IS NULL") == 0
