"""Many gates, few seats, and rows or recipients that somebody else holds: a pass goes its way."""

from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.job import Priority
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.worker.admit import GATES_AHEAD, MOST_SEATS
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, Limited, let_pass

A, B = "a@example.com", "b@example.com"


@pytest.fixture
def one(unit_of_work: UnitOfWorkFactory) -> Limited:
    """One notification an hour."""
    return Limited(unit_of_work, 1)


def open_gates(one: Limited, jobs: Jobs, waiting: dict[str, Priority]) -> list[UUID]:
    """Park a job for each recipient and let the gates open."""
    for recipient in waiting:
        jobs.add(recipient=recipient)
    assert len(one.send()) == len(waiting)
    parked = [jobs.add(recipient=who, priority=priority)[0] for who, priority in waiting.items()]
    assert one.claim() == []
    let_pass(jobs, HOUR_S)
    return parked


def test_with_more_open_gates_than_seats_the_most_urgent_goes_first(
    one: Limited, jobs: Jobs
) -> None:
    low, high = open_gates(one, jobs, {A: Priority.LOW, B: Priority.HIGH})
    # Though its gate is open for less long.
    jobs.run("UPDATE rate_limit_gates SET opens_at = now() WHERE recipient = :b", b=B)
    assert one.claimed(1) == [high]
    assert one.claimed(1) == [low]


def test_a_pass_that_fills_its_seats_at_gates_goes_on_at_once(one: Limited, jobs: Jobs) -> None:
    open_gates(one, jobs, {A: Priority.NORMAL, B: Priority.NORMAL})
    batch = one.batch(1)
    assert (len(batch.claims), batch.next_due_s) == (1, 0.0)


def test_a_gate_that_somebody_is_at_hides_no_other(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    busy = {f"{number}@example.com": Priority.HIGH for number in range(GATES_AHEAD)}
    low, *high = open_gates(one, jobs, {A: Priority.LOW, **busy})
    with unit_of_work() as unit:
        assert unit.recipients.try_lock(busy) == set(busy)
        assert one.claimed(1) == [low]
        # Somebody who decides is done in a moment.
        assert one.batch(1).next_due_s == pytest.approx(0.05)
    assert set(one.claimed()) == set(high)


def test_parked_jobs_that_somebody_holds_hide_no_others_and_keep_nobody_busy(
    engine: Engine, one: Limited, jobs: Jobs
) -> None:
    low, high = open_gates(one, jobs, {A: Priority.LOW, B: Priority.HIGH})
    with engine.begin() as holder:
        holder.execute(text("SELECT FROM job_queue WHERE job_id = :id FOR UPDATE"), {"id": high})
        assert one.claimed(1) == [low]
        # Somebody may hold them for as long as they like: not before the next regular pass.
        batch = one.batch(1)
        assert (batch.claims, batch.next_due_s) == ([], None)
    assert one.claimed(1) == [high]


def test_gates_at_which_nobody_waits_any_more_are_closed_one_after_the_other(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    waiting = {f"{name}@example.com": Priority.NORMAL for name in "cde"}
    parked = open_gates(one, jobs, waiting)
    with unit_of_work() as unit:
        for job_id in parked:
            unit.operations.cancel(job_id)
        unit.commit()
    assert [one.batch(1).next_due_s for _ in parked] == [0.0, 0.0, 0.0]
    assert one.batch(1).next_due_s is None
    assert jobs.one("SELECT count(*) FROM rate_limit_gates") == 0


def test_recipients_that_somebody_is_at_keep_nobody_busy_however_much_is_due_to_them(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    jobs.add(10, recipient=A, priority=Priority.HIGH)
    # More than a pass looks ahead.
    jobs.add(600, recipient=B)
    with unit_of_work() as unit:
        assert unit.recipients.try_lock([A, B]) == {A, B}
        batch = one.batch(10)
    assert batch.claims == []
    assert batch.next_due_s == pytest.approx(0.05)


def test_several_gates_whose_jobs_somebody_holds_hide_no_other(
    engine: Engine, one: Limited, jobs: Jobs
) -> None:
    waiting = {f"{name}@example.com": Priority.HIGH for name in "cdefg"} | {A: Priority.LOW}
    *held, low = open_gates(one, jobs, waiting)
    with engine.begin() as holder:
        ids = {"ids": held}
        holder.execute(text("SELECT FROM job_queue WHERE job_id = ANY(:ids) FOR UPDATE"), ids)
        assert one.claimed(1) == [low]


def test_the_share_for_aged_jobs_is_one_of_what_a_pass_takes_at_most(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(MOST_SEATS + 100, priority=Priority.LOW, due_in_s=-3600)
    half = Limited(unit_of_work, 10, aging_share=0.5)
    assert len(half.claim(3 * MOST_SEATS)) == MOST_SEATS
    assert len(half.claim(3 * MOST_SEATS)) == 100
