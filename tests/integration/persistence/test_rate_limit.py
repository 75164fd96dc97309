"""Who may be called under a limit, and what every way through a job's life does to its slot."""

from uuid import UUID

import pytest

from notify_queue.domain.attempt import Ended, Release, Result, Retry, Verdict
from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Failed
from notify_queue.notifications.redrive import RedriveNotification
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, Limited, expire, let_pass, look_at_gates

A = "a@example.com"
AT_ONCE = Retry(0, "later")


@pytest.fixture
def one(unit_of_work: UnitOfWorkFactory) -> Limited:
    """One notification an hour."""
    return Limited(unit_of_work, 1)


def parked(jobs: Jobs, job_id: UUID) -> bool:
    return bool(jobs.one("SELECT gate IS NOT NULL FROM job_queue WHERE job_id = :id", id=job_id))


def slots(jobs: Jobs) -> int:
    return int(jobs.one("SELECT count(*) FROM rate_limit_reservations"))


def test_a_window_holds_as_many_different_notifications_as_the_limit_says(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    three = Limited(unit_of_work, 3)
    jobs.add(8, recipient=A)
    assert len(three.send()) == 3
    assert three.claim() == []
    let_pass(jobs, HOUR_S - 20)
    look_at_gates(jobs)
    assert three.claim() == []
    let_pass(jobs, 21)
    assert len(three.claim()) == 3
    assert jobs.statuses() == {"SENT": 3, "PROCESSING": 3, "PENDING": 2}


def test_a_recipient_is_the_exact_string_on_every_channel(one: Limited, jobs: Jobs) -> None:
    jobs.add(recipient=A, channel=Channel.EMAIL)
    jobs.add(recipient=A, channel=Channel.SMS)
    other = jobs.add(recipient=A.upper())
    claims = one.claim()
    assert sorted(claim.recipient for claim in claims) == sorted([A, A.upper()])
    assert set(other) < {claim.job_id for claim in claims}


def test_an_attempt_holds_its_slot_for_as_long_as_it_runs(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    brief = Limited(unit_of_work, 1, window_s=1)
    jobs.add(recipient=A)
    claims = brief.claim()
    [second] = jobs.add(recipient=A)
    for _ in range(3):
        let_pass(jobs, 10)
        look_at_gates(jobs)
        assert brief.claim() == []
    brief.end(claims)
    let_pass(jobs, 1)
    assert brief.claimed() == [second]


def test_a_slot_is_held_from_the_end_of_the_attempt_on(one: Limited, jobs: Jobs) -> None:
    """The provider may have been called at the very end of it."""
    [job_id] = jobs.add(recipient=A)
    claims = one.claim()
    before = jobs.one("SELECT clock_timestamp()")
    one.end(claims)
    after = jobs.one("SELECT clock_timestamp()")
    reserved_at = jobs.one(
        "SELECT reserved_at FROM rate_limit_reservations WHERE job_id = :id", id=job_id
    )
    assert before < reserved_at < after


@pytest.mark.parametrize("verdict", [Ended(Status.SENT), AT_ONCE])
def test_a_slot_is_stamped_by_the_clock_and_not_by_the_transaction(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs, verdict: Verdict
) -> None:
    """A transaction may wait for a lock after it has begun."""
    jobs.add(recipient=A)
    [claim] = one.claim()
    with unit_of_work() as unit:
        unit.reading.now()
        later = jobs.one("SELECT clock_timestamp()")
        unit.results.record([Result(claim, Failed("no"), verdict, duration_ms=1)], limited=True)
        unit.commit()
    assert jobs.one("SELECT reserved_at FROM rate_limit_reservations") > later


def test_a_slot_that_is_given_back_is_there_for_others_at_once(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    [first] = jobs.add(recipient=A)
    untried = one.claim()
    [second] = jobs.add(recipient=A)
    assert one.claim() == []
    one.end(untried, Release())
    with unit_of_work() as unit:
        unit.operations.cancel(first)
        unit.commit()
    assert one.claimed() == [second]


def test_a_retry_needs_no_second_slot_and_keeps_the_one_it_has_for_longer(
    one: Limited, jobs: Jobs
) -> None:
    [first] = jobs.add(recipient=A, priority=Priority.LOW)
    one.end(one.claim(), AT_ONCE)
    [second] = jobs.add(recipient=A, priority=Priority.HIGH)
    let_pass(jobs, 0.6 * HOUR_S)
    again = one.claim()
    assert [(claim.job_id, claim.attempt) for claim in again] == [(first, 2)]
    one.end(again)
    assert slots(jobs) == 1
    let_pass(jobs, 0.6 * HOUR_S)
    look_at_gates(jobs)
    assert one.claim() == []
    let_pass(jobs, 0.4 * HOUR_S)
    assert one.claimed() == [second]


def test_a_retry_after_its_window_needs_a_slot_as_everybody_does(one: Limited, jobs: Jobs) -> None:
    [first] = jobs.add(recipient=A)
    one.end(one.claim(), Retry(1, "later"))
    jobs.run("UPDATE job_queue SET due_at = now() + interval '1 hour'")
    let_pass(jobs, HOUR_S)
    jobs.add(recipient=A)
    assert len(one.send()) == 1
    jobs.run("UPDATE job_queue SET due_at = now() - interval '1 second'")
    assert one.claim() == []
    assert parked(jobs, first)


def test_after_the_limit_was_lowered_nobody_is_called_until_the_lower_one_is_kept(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    held = jobs.add(3, recipient=A)
    Limited(unit_of_work, 3).end(Limited(unit_of_work, 3).claim(), AT_ONCE)
    jobs.add(recipient=A)
    lower = Limited(unit_of_work, 1)
    # Those who hold slots of the old limit are no exception.
    assert lower.claim() == []
    assert all(parked(jobs, job_id) for job_id in held)
    let_pass(jobs, HOUR_S - 20)
    look_at_gates(jobs)
    assert lower.claim() == []
    let_pass(jobs, 21)
    assert len(lower.send()) == 1
    assert lower.claim() == []


def test_a_late_result_takes_no_slot(one: Limited, jobs: Jobs) -> None:
    [first] = jobs.add(recipient=A)
    late = one.claim()
    expire(jobs, first)
    one.recover()
    assert slots(jobs) == 1
    let_pass(jobs, HOUR_S)
    one.end(late)
    # It stands as recovery has left it.
    assert jobs.one("SELECT reserved_at < now() - interval '59 min' FROM rate_limit_reservations")


def test_a_parked_holder_is_called_when_fewer_others_than_the_lower_limit_are_left(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    two, lower = Limited(unit_of_work, 2), Limited(unit_of_work, 1)
    jobs.add(recipient=A)
    two.send()
    let_pass(jobs, 0.5 * HOUR_S)
    [holder] = jobs.add(recipient=A)
    two.end(two.claim(), AT_ONCE)
    assert lower.claim() == []
    assert parked(jobs, holder)
    # The other one's slot is over, and its own is not.
    let_pass(jobs, 0.6 * HOUR_S)
    assert lower.claimed() == [holder]


def test_who_alone_holds_a_slot_of_before_is_called_under_the_lower_limit(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    two, lower = Limited(unit_of_work, 2), Limited(unit_of_work, 1)
    jobs.add(recipient=A)
    two.send()
    let_pass(jobs, 0.6 * HOUR_S)
    [second] = jobs.add(recipient=A)
    two.end(two.claim(), AT_ONCE)
    let_pass(jobs, 0.6 * HOUR_S)
    assert lower.claimed() == [second]


@pytest.mark.parametrize("status", [Status.DEAD_LETTERED, Status.FAILED])
def test_a_redriven_job_is_called_on_its_own_slot_within_the_window(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs, status: Status
) -> None:
    [first] = jobs.add(recipient=A)
    one.end(one.claim(), Ended(status, "no"))
    jobs.add(recipient=A, priority=Priority.HIGH)
    assert one.claim() == []
    RedriveNotification(unit_of_work, 6, lambda _: None)(first)
    assert one.send() == [first]
    assert slots(jobs) == 1
    let_pass(jobs, HOUR_S - 20)
    look_at_gates(jobs)
    assert one.claim() == []


def test_a_redriven_job_needs_a_slot_after_the_window(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    [first] = jobs.add(recipient=A)
    one.end(one.claim(), Ended(Status.DEAD_LETTERED, "no"))
    let_pass(jobs, HOUR_S)
    [second] = jobs.add(recipient=A)
    assert one.send() == [second]
    RedriveNotification(unit_of_work, 6, lambda _: None)(first)
    assert one.claim() == []
    assert parked(jobs, first)
    let_pass(jobs, HOUR_S)
    assert one.claimed() == [first]


def test_a_job_that_is_released_untried_has_spent_no_slot_and_does_not_wait(
    one: Limited, jobs: Jobs
) -> None:
    [first] = jobs.add(recipient=A, due_in_s=-10)
    [second] = jobs.add(recipient=A)
    one.end(one.claim(), Release())
    assert slots(jobs) == 0
    assert jobs.row(first)["attempt_count"] == 0
    assert one.claimed() == [first]
    assert parked(jobs, second)


def test_a_job_that_is_released_untried_keeps_the_slot_of_an_earlier_attempt(
    one: Limited, jobs: Jobs
) -> None:
    [first] = jobs.add(recipient=A)
    one.end(one.claim(), AT_ONCE)
    before = jobs.one("SELECT reserved_at FROM rate_limit_reservations")
    one.end(one.claim(), Release())
    assert jobs.one("SELECT reserved_at FROM rate_limit_reservations") == before
    jobs.add(recipient=A, priority=Priority.HIGH)
    assert one.claimed() == [first]


@pytest.mark.parametrize("max_attempts", [1, 6])
def test_a_job_that_is_recovered_holds_its_slot_from_the_recovery_on(
    one: Limited, jobs: Jobs, max_attempts: int
) -> None:
    """While it was claimed it held it; nobody knows whether the provider was called, or when."""
    [first] = jobs.add(recipient=A, max_attempts=max_attempts)
    one.claim()
    [second] = jobs.add(recipient=A)
    let_pass(jobs, 2 * HOUR_S)
    look_at_gates(jobs)
    assert one.claim() == []
    expire(jobs, first)
    assert one.recover().requeued == 1
    again = one.suspect() if max_attempts == 1 else one.claimed()
    assert again == [first]
    # Whatever the first recovery has reserved is over.
    let_pass(jobs, 2 * HOUR_S)
    expire(jobs, first)
    one.recover()
    let_pass(jobs, HOUR_S - 20)
    jobs.run("UPDATE job_queue SET due_at = now() + interval '1 hour' WHERE job_id = :i", i=first)
    look_at_gates(jobs)
    assert one.claim() == []
    let_pass(jobs, 21)
    assert one.claimed() == [second]
