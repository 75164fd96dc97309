"""Suspects under a limit: they wait for slots as others do, and are still tried alone."""

from uuid import UUID

import pytest

from notify_queue.domain.job import Priority
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, Limited, expire, let_pass

A = "a@example.com"


@pytest.fixture
def one(unit_of_work: UnitOfWorkFactory) -> Limited:
    """One notification an hour."""
    return Limited(unit_of_work, 1)


def parked(jobs: Jobs, job_id: UUID) -> bool:
    return bool(jobs.one("SELECT gate IS NOT NULL FROM job_queue WHERE job_id = :id", id=job_id))


def a_suspect_with_its_slot(brief: Limited, jobs: Jobs) -> UUID:
    """Make a suspect that was refused and parked, and whose turn has come."""
    [suspect] = jobs.add(recipient=A, max_attempts=1)
    brief.claim()
    expire(jobs, suspect)
    brief.recover()
    let_pass(jobs, 2)
    jobs.add(recipient=A)
    assert len(brief.send()) == 1
    assert brief.suspect() == []
    let_pass(jobs, 2)
    assert brief.claim() == []
    return suspect


def test_a_suspect_keeps_its_slot_until_a_worker_had_time_for_it(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    brief = Limited(unit_of_work, 1, window_s=2)
    suspect = a_suspect_with_its_slot(brief, jobs)
    # Busy workers make time for one about once a minute.
    let_pass(jobs, 60)
    jobs.add(recipient=A)
    assert brief.claim() == []
    assert brief.suspect() == [suspect]


def test_a_suspect_without_a_slot_is_parked_and_then_tried_alone_on_the_one_it_gets(
    one: Limited, jobs: Jobs
) -> None:
    [suspect] = jobs.add(recipient=A, max_attempts=1)
    one.claim()
    expire(jobs, suspect)
    one.recover()
    let_pass(jobs, HOUR_S)
    jobs.add(recipient=A)
    assert len(one.send()) == 1
    assert one.suspect() == []
    assert parked(jobs, suspect)
    let_pass(jobs, HOUR_S)
    [bystander] = jobs.add()
    # Its turn has come: it takes the slot, but nobody claims it together with others.
    assert one.claimed() == [bystander]
    assert not parked(jobs, suspect)
    jobs.add(recipient=A, priority=Priority.HIGH)
    assert one.claim() == []
    assert one.suspect() == [suspect]


def test_suspects_of_a_full_recipient_hide_no_other(one: Limited, jobs: Jobs) -> None:
    hidden = jobs.add(3, recipient=A, max_attempts=1, priority=Priority.HIGH)
    jobs.run(
        "UPDATE job_queue SET reconciliation_granted = true, attempt_count = 1, max_attempts = 2"
    )
    jobs.add(recipient=A)
    assert len(one.send()) == 1
    [other] = jobs.add(recipient="b@example.com", max_attempts=1)
    one.claim()
    expire(jobs, other)
    one.recover()
    assert one.suspect() == [other]
    assert all(parked(jobs, job_id) for job_id in hidden)


def test_a_gate_does_not_wait_for_a_slot_that_was_kept_for_a_suspect(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    brief = Limited(unit_of_work, 1, window_s=2)
    a_suspect_with_its_slot(brief, jobs)
    running = brief.suspect_claims()
    [other] = jobs.add(recipient=A)
    # The slot is kept for two minutes, but the attempt that it was kept for is running now.
    assert brief.claim() == []
    assert brief.batch().next_due_s == pytest.approx(2, abs=0.5)
    brief.end(running)
    let_pass(jobs, 2)
    assert brief.claimed() == [other]


def test_suspects_that_take_their_slots_leave_no_due_job_behind(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    two = Limited(unit_of_work, 2)
    jobs.add(2, recipient=A)
    assert len(two.send()) == 2
    suspects = jobs.add(2, recipient=A, max_attempts=2, priority=Priority.HIGH)
    jobs.run(
        "UPDATE job_queue SET reconciliation_granted = true, attempt_count = 1"
        " WHERE job_id = ANY(:ids)",
        ids=suspects,
    )
    assert two.suspect() == []
    let_pass(jobs, HOUR_S)
    [due] = jobs.add(recipient="c@example.com")
    assert two.batch(2).next_due_s == 0.0
    assert two.claimed(2) == [due]
