"""The books of the limit: pruned, and brought in line with a limit that was changed or ended."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from notify_queue.domain.attempt import Ended, Result, Retry, Verdict
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Failed
from notify_queue.maintenance.limits import PASS_SIZE, Tidied, TidyLimits
from notify_queue.maintenance.recover import RecoverExpired
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.worker.claim import ClaimDueJobs
from notify_queue.worker.complete import CompletionBuffer
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, LEASE_S, Limited, expire, let_pass
from tests.support.statements import Statements

A, B = "a@example.com", "b@example.com"
NOTHING = Tidied(let_go=False, more=False)


@pytest.fixture
def one(unit_of_work: UnitOfWorkFactory) -> Limited:
    """One notification an hour."""
    return Limited(unit_of_work, 1)


@pytest.fixture
def off(unit_of_work: UnitOfWorkFactory) -> TidyLimits:
    """The upkeep when the limit is switched off."""
    return TidyLimits(unit_of_work, "w", None, timedelta(hours=1))


def rows(jobs: Jobs, table: str) -> int:
    return int(jobs.one(f"SELECT count(*) FROM {table}"))


def test_attempts_that_ended_a_window_ago_are_forgotten_and_no_others(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    many = Limited(unit_of_work, 10)
    jobs.add(3)
    many.send()
    let_pass(jobs, HOUR_S - 20)
    jobs.add(2)
    many.send()
    assert many.tidy() == NOTHING
    assert rows(jobs, "rate_limit_reservations") == 5
    let_pass(jobs, 20)
    assert many.tidy() == NOTHING
    assert rows(jobs, "rate_limit_reservations") == 2


def test_pruning_goes_in_bounded_passes_the_oldest_first(one: Limited, jobs: Jobs) -> None:
    jobs.add(PASS_SIZE + 1)
    jobs.run(
        "INSERT INTO rate_limit_reservations SELECT job_id, recipient,"
        " now() - make_interval(hours => 2, secs => row_number() OVER ()) FROM job_queue"
    )
    youngest = jobs.one("SELECT max(reserved_at) FROM rate_limit_reservations")
    assert one.tidy() == Tidied(let_go=False, more=True)
    assert rows(jobs, "rate_limit_reservations") == 1
    assert jobs.one("SELECT reserved_at FROM rate_limit_reservations") == youngest
    assert one.tidy() == NOTHING
    assert rows(jobs, "rate_limit_reservations") == 0


def test_pruning_passes_over_a_slot_that_is_just_taken_again(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    [again, _] = jobs.add(2)
    one.send()
    let_pass(jobs, HOUR_S)
    with unit_of_work() as unit:
        unit.recipients.reserve([again], timedelta(0))
        assert one.tidy() == NOTHING
        unit.commit()
    assert one.tidy() == NOTHING
    assert jobs.one("SELECT job_id FROM rate_limit_reservations") == again


def test_a_raised_limit_lets_parked_jobs_go_before_their_gates_were_to_open(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    jobs.add(4, recipient=A)
    assert len(one.send()) == 1
    assert one.claim() == []
    three = Limited(unit_of_work, 3)
    assert three.claim() == []
    assert three.tidy() == Tidied(let_go=True, more=False)
    assert len(three.send()) == 2
    assert three.claim() == []
    # The gate is set under this limit now, and is let be until a slot opens.
    assert three.tidy() == NOTHING
    assert three.batch().next_due_s == pytest.approx(HOUR_S, abs=20)


def test_a_shortened_window_lets_parked_jobs_go_before_their_gates_were_to_open(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    jobs.add(2, recipient=A)
    assert len(one.send()) == 1
    assert one.claim() == []
    let_pass(jobs, 70)
    shorter = Limited(unit_of_work, 1, window_s=60)
    assert shorter.claim() == []
    assert shorter.tidy() == Tidied(let_go=True, more=False)
    assert len(shorter.claim()) == 1
    assert rows(jobs, "rate_limit_gates") == 0


def test_gates_that_were_set_under_a_tighter_limit_open_no_slot_that_is_taken(
    unit_of_work: UnitOfWorkFactory, one: Limited, jobs: Jobs
) -> None:
    """The upkeep only has them looked at; who is let go is decided as ever."""
    two = Limited(unit_of_work, 2)
    jobs.add(4, recipient=A)
    assert len(two.send()) == 2
    assert two.claim() == []
    assert one.tidy() == Tidied(let_go=True, more=False)
    assert one.claim() == []
    assert one.tidy() == NOTHING
    assert jobs.statuses() == {"SENT": 2, "PENDING": 2}


def test_a_recipient_that_somebody_decides_about_keeps_no_other_gate_waiting(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.park(*jobs.add(PASS_SIZE + 1))
    changed = Limited(unit_of_work, 7)
    with unit_of_work() as unit:
        [busy, *_] = unit.gates.some(1)
        assert unit.recipients.try_lock([busy]) == {busy}
        assert changed.tidy() == Tidied(let_go=True, more=True)
        assert changed.tidy().let_go
        assert changed.tidy() == NOTHING
    assert changed.tidy() == Tidied(let_go=True, more=False)


def test_a_changed_limit_is_followed_in_bounded_passes(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.park(*jobs.add(PASS_SIZE + 1))
    changed = Limited(unit_of_work, 7)
    assert changed.tidy() == Tidied(let_go=True, more=True)
    assert changed.tidy() == Tidied(let_go=True, more=False)
    assert changed.tidy() == NOTHING
    assert jobs.one("SELECT count(*) FROM rate_limit_gates WHERE opens_at <= now()") == (
        PASS_SIZE + 1
    )


def test_a_gate_that_somebody_decides_about_is_left_to_the_next_pass(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.park(*jobs.add(recipient=A), *jobs.add(recipient=B))
    changed = Limited(unit_of_work, 7)
    with unit_of_work() as unit:
        assert unit.recipients.try_lock({A}) == {A}
        changed.tidy()
        assert jobs.one("SELECT recipient FROM rate_limit_gates WHERE opens_at <= now()") == B
    assert changed.tidy() == Tidied(let_go=True, more=False)


def test_switching_off_lets_everybody_go_and_closes_the_gates(
    one: Limited, off: TidyLimits, jobs: Jobs
) -> None:
    jobs.add(5, recipient=A)
    jobs.add(5, recipient=B)
    assert len(one.send()) == 2
    assert one.claim() == []
    assert off() == Tidied(let_go=True, more=False)
    assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 0
    assert rows(jobs, "rate_limit_gates") == 0
    assert off() == NOTHING


def test_switching_off_goes_in_bounded_passes_until_nothing_is_left(
    off: TidyLimits, jobs: Jobs
) -> None:
    jobs.park(*jobs.add(PASS_SIZE + 100))
    passes = 1
    while off().more:
        passes += 1
        assert passes < 10
    assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 0
    assert rows(jobs, "rate_limit_gates") == 0


def test_slots_of_before_count_when_the_limit_is_switched_on_again(
    one: Limited, off: TidyLimits, jobs: Jobs
) -> None:
    jobs.add(2, recipient=A)
    assert len(one.send()) == 1
    off()
    assert one.claim() == []


def test_old_slots_are_forgotten_with_the_limit_switched_off_too(
    one: Limited, off: TidyLimits, jobs: Jobs
) -> None:
    jobs.add(2)
    one.send()
    let_pass(jobs, HOUR_S)
    assert off() == NOTHING
    assert rows(jobs, "rate_limit_reservations") == 0


def test_without_a_limit_no_statement_touches_its_tables_and_nothing_is_locked(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine
) -> None:
    claim = ClaimDueJobs(
        unit_of_work,
        "w",
        visibility_timeout_s=LEASE_S,
        aging_share=0.1,
        aging_after=timedelta(seconds=300),
        new_token=uuid4,
        rate_limit=None,
    )
    buffer = CompletionBuffer(
        unit_of_work,
        "w",
        limited=False,
        wake=lambda: None,
        wake_poll=lambda: None,
        wake_webhooks=lambda: None,
    )
    jobs.add(5, recipient=A, priority=Priority.LOW, due_in_s=-900)
    [suspect] = jobs.add(recipient=A, max_attempts=1)
    with Statements(engine) as statements:
        batch = claim(100)
        expire(jobs, suspect)
        RecoverExpired(unit_of_work, "w", LEASE_S, limited=False)()
        assert claim.suspect_waits()
        verdicts: list[Verdict] = [Ended(Status.SENT), Retry(1, "later")] * 3
        for each, verdict in zip(batch.claims + claim.suspect().claims, verdicts, strict=False):
            buffer.add(Result(each, Failed("no"), verdict, duration_ms=1), batch.lease)
        buffer.flush()
        claim(100)
    assert len(batch.claims) == 6
    ours = [each for each in statements.seen if "rate_limit_" in each or "advisory" in each]
    assert ours == []
    assert rows(jobs, "rate_limit_reservations") == 0


def test_with_a_limit_a_pass_is_as_many_statements_for_one_as_for_hundreds(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine
) -> None:
    limited = Limited(unit_of_work, 1)
    counts = []
    for size in (1, 200):
        jobs.add(size)
        with Statements(engine) as statements:
            assert len(limited.send(250)) == size
        counts.append(len(statements.seen))
        jobs.run("DELETE FROM rate_limit_reservations")
    assert counts[0] == counts[1]
