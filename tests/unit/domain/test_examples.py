"""The example jobs are the 24 of the reference, and each could have come about."""

from collections import Counter
from datetime import timedelta

import pytest

from notify_queue.domain.examples import EXAMPLES, MAX_ATTEMPTS, Example
from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import LIVE, Status

NOW = timedelta()
BY_KEY = {example.key: example for example in EXAMPLES}
BUSY = {f"seed-busy-{number}" for number in range(1, 13)}
OTHERS = {
    "seed-immediate",
    "seed-delayed",
    "seed-priority-high",
    "seed-priority-normal",
    "seed-priority-low",
    "seed-retrying",
    "seed-will-fail",
    "seed-sent",
    "seed-failed",
    "seed-dead-lettered",
    "seed-cancelled",
    "seed-redriven",
}


def test_there_are_24_under_fixed_keys() -> None:
    assert len(EXAMPLES) == 24
    assert set(BY_KEY) == BUSY | OTHERS


def test_their_counts_are_those_of_a_fresh_database() -> None:
    assert Counter(example.outcome or Status.PENDING for example in EXAMPLES) == {
        Status.PENDING: 20,
        Status.SENT: 1,
        Status.FAILED: 1,
        Status.DEAD_LETTERED: 1,
        Status.CANCELLED: 1,
    }
    assert Counter(example.priority for example in EXAMPLES) == {
        Priority.HIGH: 1,
        Priority.NORMAL: 21,
        Priority.LOW: 2,
    }
    assert Counter(example.channel for example in EXAMPLES) == {
        Channel.EMAIL: 20,
        Channel.SMS: 2,
        Channel.PUSH: 2,
    }


def test_three_priorities_compete_at_one_instant() -> None:
    three = [BY_KEY[f"seed-priority-{word}"] for word in ("high", "normal", "low")]
    assert [each.priority for each in three] == [Priority.HIGH, Priority.NORMAL, Priority.LOW]
    assert {each.due for each in three} == {NOW}


def test_one_recipient_is_busier_than_its_hourly_limit() -> None:
    assert {BY_KEY[key].recipient for key in BUSY} == {"busy@example.com"}


def test_a_retry_waits_with_its_error_and_a_redriven_job_has_a_fresh_budget() -> None:
    retrying, redriven = BY_KEY["seed-retrying"], BY_KEY["seed-redriven"]
    assert (retrying.attempts, retrying.due) == (2, timedelta(seconds=30))
    assert (redriven.attempts, redriven.due, redriven.redriven) == (0, NOW, True)
    assert retrying.error == redriven.error == "Simulated provider outage"
    assert [each.key for each in EXAMPLES if each.redriven] == ["seed-redriven"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_each_could_have_come_about(example: Example) -> None:
    live = example.outcome is None
    assert (example.due is not None) == live == (example.ended is None)
    assert example.outcome not in LIVE
    assert example.attempts <= MAX_ATTEMPTS - live
    assert example.created <= example.updated <= NOW
    if example.ended is not None:
        assert example.created < example.ended == example.updated < NOW
        started = example.outcome is not Status.CANCELLED
        assert (example.attempts > 0) == started == (example.scheduled < example.ended)
        assert (example.error is None) == (example.outcome in {Status.SENT, Status.CANCELLED})
    elif example.attempts:
        assert example.error
        assert example.due is not None
        assert example.due > example.updated
    else:
        assert example.due == example.scheduled or example.redriven
