"""Who is over the limit is parked, and whose turn it is when a slot opens."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from notify_queue.domain.attempt import Release
from notify_queue.domain.job import Priority
from notify_queue.domain.page import Filter
from notify_queue.domain.schedule import spell_instant
from notify_queue.notifications.cancel import CancelNotification
from notify_queue.notifications.read import ListNotifications, ReadNotification
from notify_queue.persistence.engine import pooled_engine
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, Limited, let_pass, look_at_gates
from tests.support.postgres import Databases, sqlalchemy_url
from tests.support.waiting import until

A, B = "a@example.com", "b@example.com"
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


@pytest.fixture
def one(unit_of_work: UnitOfWorkFactory) -> Limited:
    """One notification an hour."""
    return Limited(unit_of_work, 1)


@pytest.fixture
def full(one: Limited, jobs: Jobs) -> None:
    """The slot of A has just been taken."""
    jobs.add(recipient=A)
    assert len(one.send()) == 1


def entry(jobs: Jobs, job_id: UUID) -> Any:
    """The whole row, and which version of it this is."""
    return jobs.one(
        "SELECT to_jsonb(q) || jsonb_build_object('version', q.xmin::text)"
        " FROM job_queue q WHERE job_id = :id",
        id=job_id,
    )


def gates(jobs: Jobs) -> int:
    return int(jobs.one("SELECT count(*) FROM rate_limit_gates"))


@pytest.mark.usefixtures("full")
def test_a_parked_job_waits_unchanged_until_its_recipients_next_slot(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    [job_id] = jobs.add(recipient=A, due_in_s=-5)
    before = entry(jobs, job_id)
    assert one.claim() == []
    kept = ("due_at", "attempt_count", "max_attempts", "priority", "claim_token", "created_at")
    after = entry(jobs, job_id)
    assert [after[name] for name in kept] == [before[name] for name in kept]
    assert (after["rate_limited"], after["gate"]) == (True, A)
    row = jobs.row(job_id)
    assert (row["status"], row["attempt_count"]) == ("PENDING", 0)
    slot = jobs.one("SELECT reserved_at FROM rate_limit_reservations")
    assert row["next_attempt_at"] == slot + timedelta(seconds=HOUR_S)
    read = ReadNotification(unit_of_work)(job_id)
    assert read.next_attempt_at == row["next_attempt_at"]
    [listed] = ListNotifications(unit_of_work)(Filter(status=read.status, recipient=A), 10).items
    assert listed == read


@pytest.mark.usefixtures("full")
def test_a_parking_is_logged_once(
    one: Limited, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first, second = jobs.add(2, recipient=A)
    for _ in range(5):
        look_at_gates(jobs)
        assert one.claim() == []
    let_pass(jobs, HOUR_S)
    assert len(one.send()) == 1
    assert one.claim() == []
    records: list[Any] = [each.msg for each in caplog.records]
    lines = [each for each in records if each["event"] == "job.rate_limited"]
    assert {line["jobId"] for line in lines} == {str(first), str(second)}
    assert len(lines) == 2
    assert {line["attempt"] for line in lines} == {1}


@pytest.mark.usefixtures("full")
def test_the_log_says_when_the_slot_opens(
    one: Limited, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    [job_id] = jobs.add(recipient=A)
    one.claim()
    records: list[Any] = [each.msg for each in caplog.records]
    [line] = [each for each in records if each["event"] == "job.rate_limited"]
    assert line["retryAt"] == spell_instant(jobs.row(job_id)["next_attempt_at"])


@pytest.mark.usefixtures("full")
def test_waiting_writes_nothing_however_often_the_gate_is_looked_at(
    one: Limited, jobs: Jobs
) -> None:
    [job_id] = jobs.add(recipient=A)
    one.claim()
    before = entry(jobs, job_id)
    for _ in range(50):
        look_at_gates(jobs)
        assert one.claim() == []
    assert entry(jobs, job_id) == before
    assert jobs.one("SELECT opens_at > now() + interval '59 minutes' FROM rate_limit_gates")


@pytest.mark.usefixtures("full")
def test_at_an_open_gate_the_best_goes_first_and_among_equals_the_longest_due(
    one: Limited, jobs: Jobs
) -> None:
    [low] = jobs.add(recipient=A, priority=LOW, due_in_s=-3000)
    [late] = jobs.add(recipient=A, due_in_s=-1)
    [early] = jobs.add(recipient=A, due_in_s=-100)
    [high] = jobs.add(recipient=A, priority=HIGH)
    assert one.claim() == []
    order = []
    for _ in range(4):
        let_pass(jobs, HOUR_S)
        order += one.send()
        assert one.claim() == []
    assert order == [high, early, late, low]
    assert gates(jobs) == 0


@pytest.mark.usefixtures("full")
def test_a_better_job_that_comes_later_goes_before_those_that_are_parked(
    one: Limited, jobs: Jobs
) -> None:
    [parked] = jobs.add(recipient=A)
    assert one.claim() == []
    let_pass(jobs, HOUR_S)
    [better] = jobs.add(recipient=A, priority=HIGH)
    assert one.send() == [better]
    let_pass(jobs, HOUR_S)
    assert one.send() == [parked]


@pytest.mark.parametrize(("priority", "due_in_s"), [(LOW, -100), (NORMAL, -1)])
def test_a_fresh_job_never_overtakes_a_better_one_that_is_parked(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs, priority: Priority, due_in_s: float
) -> None:
    """Not even when the slot is free before the gate was to open."""
    [first] = jobs.add(recipient=A)
    claims = one.claim()
    [parked] = jobs.add(recipient=A, due_in_s=-10)
    assert one.claim() == []
    one.end(claims, Release())
    CancelNotification(unit_of_work)(first)
    jobs.add(recipient=A, priority=priority, due_in_s=due_in_s)
    assert one.claimed() == [parked]
    assert one.claim() == []


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(("parked_at", "fresh_at"), [(LOW, HIGH), (HIGH, LOW)])
def test_priority_is_strict_across_parked_and_fresh_jobs(
    one: Limited, jobs: Jobs, parked_at: Priority, fresh_at: Priority
) -> None:
    [parked] = jobs.add(recipient=A, priority=parked_at, due_in_s=-200)
    assert one.claim() == []
    let_pass(jobs, HOUR_S)
    [fresh] = jobs.add(recipient=B, priority=fresh_at)
    order = one.claimed(1) + one.claimed(1)
    assert order == ([parked, fresh] if parked_at is HIGH else [fresh, parked])


@pytest.mark.usefixtures("full")
def test_a_parked_job_that_has_aged_has_its_place_in_the_share_of_the_aged(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    sharing = Limited(unit_of_work, 1, aging_share=0.1)
    [parked] = jobs.add(recipient=A, priority=LOW, due_in_s=-900)
    assert one.claim() == []
    jobs.add(50, priority=HIGH)
    let_pass(jobs, HOUR_S)
    assert parked not in one.claimed(10)
    claimed = sharing.claimed(10)
    assert parked in claimed
    assert len(claimed) == 10


@pytest.mark.usefixtures("full")
def test_a_gate_closes_when_its_jobs_were_cancelled(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    parked = jobs.add(3, recipient=A)
    assert one.claim() == []
    for job_id in parked:
        CancelNotification(unit_of_work)(job_id)
    let_pass(jobs, HOUR_S)
    assert one.claim() == []
    assert gates(jobs) == 0
    assert one.batch().next_due_s is None


@pytest.mark.usefixtures("full")
def test_the_next_best_takes_the_slot_of_one_that_was_cancelled(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    [best] = jobs.add(recipient=A, priority=HIGH)
    [next_best] = jobs.add(recipient=A)
    jobs.add(recipient=A, priority=LOW)
    assert one.claim() == []
    CancelNotification(unit_of_work)(best)
    let_pass(jobs, HOUR_S)
    assert one.claimed() == [next_best]
    assert gates(jobs) == 1
    assert jobs.one("SELECT priority FROM rate_limit_gates") == LOW


@pytest.mark.parametrize("seats", [1, 100])
def test_a_recipient_with_hundreds_of_urgent_jobs_hides_nobody_else(
    one: Limited, jobs: Jobs, seats: int
) -> None:
    jobs.add(500, recipient=A, priority=HIGH)
    [other] = jobs.add(recipient=B, priority=LOW)
    assert other in one.send(seats) + one.send(seats)
    assert jobs.one("SELECT count(*) FROM notification_jobs WHERE outcome = 'SENT'") == 2


@pytest.mark.parametrize("seats", [1, 7])
def test_a_pass_claims_no_more_than_it_has_room_for_however_many_gates_open(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, seats: int
) -> None:
    jobs.park(*(each for _ in range(5) for each in jobs.add(20)))
    jobs.add(20)
    let_pass(jobs, HOUR_S)
    five = Limited(unit_of_work, 5)
    batches = [five.batch(seats) for _ in range(3)]
    assert [len(batch.claims) for batch in batches] == [seats] * 3
    assert {batch.next_due_s for batch in batches} == {0}


def test_a_pass_that_leaves_due_jobs_behind_says_that_there_are_more(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    """A pass has fewer seats than a large worker has room: who is left must not wait for a poll."""
    jobs.park(*jobs.add(200, recipient=A))
    let_pass(jobs, HOUR_S)
    jobs.add(100, priority=LOW)
    batch = Limited(unit_of_work, 1000).batch(400)
    left = 300 - len(batch.claims)
    assert batch.next_due_s == (0 if left else None)


@pytest.mark.usefixtures("full")
def test_the_next_look_is_when_the_gate_may_open(one: Limited, jobs: Jobs) -> None:
    jobs.add(recipient=A)
    jobs.add(recipient=B, due_in_s=2 * HOUR_S)
    assert one.batch().next_due_s == pytest.approx(HOUR_S, abs=20)
    let_pass(jobs, HOUR_S / 2)
    assert one.batch().next_due_s == pytest.approx(HOUR_S / 2, abs=20)


def test_a_limited_job_is_written_fewer_than_three_times_in_its_life(databases: Databases) -> None:
    """By the database's own count, a backlog of thirty windows being drained."""
    url = databases.clone()
    engine = pooled_engine(sqlalchemy_url(url), "drained", 1)
    jobs, backlog = Jobs(engine), 3_000
    hundred = Limited(unit_of_work_factory(engine), 100)
    jobs.add(backlog, recipient=A)
    sent = 0
    while sent < backlog:
        while claimed := len(hundred.send()):
            sent += claimed
        let_pass(jobs, HOUR_S)
    # A session tells all it has counted when it ends.
    engine.dispose()
    until(lambda: _written(jobs, "n_tup_del", "job_queue") == backlog, "the statistics")
    tables = ("job_queue", "notification_jobs")
    updated = sum(_written(jobs, "n_tup_upd", table) for table in tables)
    engine.dispose()
    databases.drop(url)
    # It is parked, it is claimed, and in the ledger it is sent.
    assert updated < 3 * backlog


def _written(jobs: Jobs, counter: str, table: str) -> int:
    return int(
        jobs.one(f"SELECT {counter} FROM pg_stat_user_tables WHERE relname = :table", table=table)
    )
