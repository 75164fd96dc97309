"""Due jobs are handed out: which, how many, and to one worker each."""

import threading
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim
from notify_queue.domain.job import Priority
from notify_queue.persistence.engine import pooled_engine
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.postgres import Databases, sqlalchemy_url
from tests.support.waiting import until

NO_AGING = Aging(0, timedelta(seconds=300))


def claim(
    unit_of_work: UnitOfWorkFactory, limit: int, aging: Aging = NO_AGING, worker: str = "w"
) -> list[Claim]:
    with unit_of_work() as unit:
        due = unit.claims.lock_due(limit, aging)
        claims = unit.claims.claim(due, worker, uuid4()) if due else []
        unit.commit()
    return claims


def ids(claims: list[Claim]) -> set[UUID]:
    return {each.job_id for each in claims}


def test_a_claim_takes_only_what_is_due(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    due = jobs.add(3)
    jobs.add(2, due_in_s=3600)
    assert ids(claim(unit_of_work, 10)) == set(due)
    assert claim(unit_of_work, 10) == []


def test_a_claim_counts_the_attempt_and_names_its_owner(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    [job_id] = jobs.add(recipient="a@example.com")
    [claimed] = claim(unit_of_work, 1, worker="worker-7")
    row = jobs.row(job_id)
    assert (row["status"], row["attempt_count"], row["locked_by"]) == ("PROCESSING", 1, "worker-7")
    assert row["claim_token"] == claimed.token
    assert row["updated_at"] == row["locked_at"] > row["created_at"]
    assert (claimed.attempt, claimed.max_attempts) == (1, 6)
    assert claimed.recipient == "a@example.com"
    assert claimed.payload == {"subject": "hello", "text": "world"}
    assert claimed.delivery_key == str(job_id)


def test_higher_priority_goes_first_and_within_one_the_longest_due(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    low = jobs.add(priority=Priority.LOW, due_in_s=-200)
    new = jobs.add(priority=Priority.NORMAL, due_in_s=-10)
    old = jobs.add(priority=Priority.NORMAL, due_in_s=-100)
    high = jobs.add(priority=Priority.HIGH, due_in_s=-1)
    order = [ids(claim(unit_of_work, 1)).pop() for _ in range(4)]
    assert order == [*high, *old, *new, *low]


def test_a_batch_fills_up_from_lower_priorities(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    high = jobs.add(2, priority=Priority.HIGH)
    low = jobs.add(5, priority=Priority.LOW)
    claimed = ids(claim(unit_of_work, 4))
    assert set(high) <= claimed
    assert len(claimed & set(low)) == 2


def test_aged_jobs_of_lower_priority_get_their_share_first(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(50, priority=Priority.HIGH)
    oldest = jobs.add(priority=Priority.LOW, due_in_s=-900)
    older = jobs.add(priority=Priority.NORMAL, due_in_s=-600)
    jobs.add(3, priority=Priority.NORMAL, due_in_s=-400)
    claimed = ids(claim(unit_of_work, 20, Aging(2, timedelta(seconds=300))))
    assert len(claimed) == 20
    assert {*oldest, *older} <= claimed
    assert len(claimed - {*oldest, *older}) == 18


def test_with_nothing_aged_the_order_is_strict(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    high = jobs.add(10, priority=Priority.HIGH)
    jobs.add(10, priority=Priority.LOW, due_in_s=-299)
    assert ids(claim(unit_of_work, 10, Aging(1, timedelta(seconds=300)))) == set(high)


def test_an_aged_job_is_listed_once(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    """Its own lock does not hide it from the ordinary scan of the same transaction."""
    aged = jobs.add(4, priority=Priority.LOW, due_in_s=-900)
    with unit_of_work() as unit:
        due = unit.claims.lock_due(10, Aging(2, timedelta(seconds=300)))
    assert sorted(each.job_id for each in due) == sorted(aged)


def test_an_aged_job_that_was_put_back_meanwhile_is_not_claimed_early(
    databases: Databases,
) -> None:
    """Between its listing and its lock another worker may have tried it and put it back.

    A row policy that waits for a lock of ours holds the claim up exactly there.
    """
    url = databases.clone()
    admin = pooled_engine(sqlalchemy_url(url), "aged", 3)
    jobs = Jobs(admin)
    jobs.add(priority=Priority.LOW, due_in_s=-900)
    for statement in (
        "CREATE FUNCTION held() RETURNS boolean LANGUAGE plpgsql VOLATILE AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN true; END $$",
        "ALTER TABLE job_queue ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY held ON job_queue USING (held())",
        "CREATE ROLE held_worker",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO held_worker",
    ):
        jobs.run(statement)
    taken: list[object] = []

    def work() -> None:
        with unit_of_work_factory(admin)() as unit:
            unit._session.execute(text("SET LOCAL ROLE held_worker"))
            taken.extend(unit.claims.lock_due(10, Aging(1, timedelta(seconds=300))))

    claiming = threading.Thread(target=work)
    with admin.connect() as ours:
        ours.execute(text("SELECT pg_advisory_lock(42)"))
        ours.commit()
        claiming.start()
        until(
            lambda: jobs.one("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1,
            "the claim to be held up",
        )
        jobs.run("UPDATE job_queue SET due_at = now() + interval '1 hour'")
        ours.execute(text("SELECT pg_advisory_unlock(42)"))
        ours.commit()
    claiming.join(10)
    jobs.run("DROP OWNED BY held_worker; DROP ROLE held_worker")
    admin.dispose()
    databases.drop(url)
    assert taken == []


def test_rows_that_another_transaction_holds_are_passed_over(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(10)
    with unit_of_work() as first:
        held = first.claims.lock_due(6, NO_AGING)
        with unit_of_work() as second:
            others = second.claims.lock_due(10, NO_AGING)
    assert len(held) == 6
    assert len(others) == 4
    assert not set(held) & set(others)


def test_parked_and_claimed_jobs_are_not_claimed(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    [parked, free] = jobs.add(2)
    jobs.park(parked)
    assert ids(claim(unit_of_work, 10)) == {free}


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_a_claim_never_exceeds_its_limit_under_hostile_statistics(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, engine: Engine, limit: int
) -> None:
    """Pitfall C1: statistics of a tiny table and every plan but the nested loop forbidden."""
    jobs.add(1)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE job_queue"))
    jobs.add(60)
    jobs.add(10, priority=Priority.LOW, due_in_s=-900)
    with unit_of_work() as unit:
        for plan in ("hashjoin", "mergejoin", "hashagg", "sort", "material"):
            unit._session.execute(text(f"SET LOCAL enable_{plan} = off"))
        aging = Aging(1 if limit > 1 else 0, timedelta(seconds=300))
        due = unit.claims.lock_due(limit, aging)
        claimed = unit.claims.claim(due, "w", uuid4())
        unit.commit()
    assert len(claimed) == limit
    assert jobs.statuses() == {"PENDING": 71 - limit, "PROCESSING": limit}


def test_the_next_due_time_is_the_earliest_of_any_priority(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    with unit_of_work() as unit:
        assert unit.claims.seconds_until_next() is None
    jobs.add(priority=Priority.HIGH, due_in_s=500)
    jobs.add(priority=Priority.LOW, due_in_s=100)
    jobs.add(priority=Priority.NORMAL, due_in_s=-5)
    with unit_of_work() as unit:
        seconds = unit.claims.seconds_until_next()
    assert seconds is not None
    assert 90 < seconds <= 100


def test_a_lease_begins_at_the_clock_and_not_at_the_transaction(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    """Pitfall T4: now() is where the transaction began, which may have waited since."""
    [job_id] = jobs.add()
    with unit_of_work() as unit:
        began = unit._session.scalar(text("SELECT now() FROM pg_sleep(0.05)"))
        unit.claims.claim(unit.claims.lock_due(1, NO_AGING), "w", uuid4())
        unit.commit()
    assert jobs.row(job_id)["locked_at"] - began >= timedelta(milliseconds=50)


@pytest.mark.parametrize(
    "change",
    [
        "claim_token = gen_random_uuid()",
        "locked_by = 'somebody'",
        "locked_at = now()",
        "claim_token = gen_random_uuid(), locked_by = 'somebody'",
        "attempt_count = 7",
        "attempt_count = 6",
        "attempt_count = -1",
        "max_attempts = 0",
        "priority = 4",
        "rate_limited = true, attempt_count = 1, "
        "claim_token = gen_random_uuid(), locked_by = 'w', locked_at = now()",
        "claim_token = gen_random_uuid(), locked_by = 'w', locked_at = now(), attempt_count = 0",
    ],
)
def test_what_must_not_be_cannot_be_written_into_the_queue(
    jobs: Jobs, engine: Engine, change: str
) -> None:
    jobs.add()
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(text(f"UPDATE job_queue SET {change}"))
