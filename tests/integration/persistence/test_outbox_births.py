"""A job that ends has one event, and they come about together or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim, Ended, Release, Result, Retry, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Failed
from notify_queue.domain.recovery import Recovered, recover
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.support.events import Events
from tests.support.jobs import Jobs

LEASE_S = 60
# A job may end in any way then: it was the last attempt, and its lease is over.
_LAST = (
    "UPDATE job_queue SET locked_at = now() - interval '1 hour', attempt_count = 7,"
    " max_attempts = 7, reconciliation_granted = true"
)
# A transaction numbers its commands, and all parts of a statement bear the number of that one.
_TOGETHER = (
    "SELECT e.xmin = j.xmin AND e.cmin = j.cmin"
    " FROM webhook_events e JOIN notification_jobs j ON j.id = job_id"
)


def claim(unit_of_work: UnitOfWorkFactory, count: int = 1) -> list[Claim]:
    with unit_of_work() as unit:
        due = unit.claims.lock_due(count, Aging(0, timedelta(seconds=300)))
        claims = unit.claims.claim(due, "w", uuid4())
        unit.commit()
    return claims


def attempted(verdict: Verdict, *, limited: bool) -> Callable[[UnitOfWork, Claim], None]:
    """Record what an attempt came to."""

    def end(unit: UnitOfWork, claimed: Claim) -> None:
        result = Result(claimed, Failed("no"), verdict, duration_ms=1)
        assert unit.results.record([result], limited=limited) == {claimed.job_id}

    return end


def recovered(*, limited: bool) -> Callable[[UnitOfWork, Claim], None]:
    """Dead-letter a claim whose lease has ended."""

    def end(unit: UnitOfWork, claimed: Claim) -> None:
        lease = timedelta(seconds=LEASE_S)
        [expired] = unit.recovery.lock_expired(1, lease)
        decided = Recovered(expired, recover(expired, LEASE_S))
        assert isinstance(decided.recovery, Ended)
        assert unit.recovery.write([decided], lease, limited=limited) == {claimed.job_id}

    return end


ENDINGS = {
    f"{name}, {'limited' if limited else 'unlimited'}": (end, status)
    for limited in (False, True)
    for name, end, status in [
        ("sent", attempted(Ended(Status.SENT), limited=limited), "SENT"),
        ("failed", attempted(Ended(Status.FAILED, "no"), limited=limited), "FAILED"),
        (
            "dead-lettered",
            attempted(Ended(Status.DEAD_LETTERED, "no"), limited=limited),
            "DEAD_LETTERED",
        ),
        ("recovered for the last time", recovered(limited=limited), "DEAD_LETTERED"),
    ]
}


@pytest.fixture
def claimed(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> Claim:
    """A claim that may end in any way."""
    jobs.add()
    [claimed] = claim(unit_of_work)
    jobs.run(_LAST)
    return claimed


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_ending_is_one_event(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events, claimed: Claim, ending: str
) -> None:
    end, status = ENDINGS[ending]
    with unit_of_work() as unit:
        end(unit, claimed)
        unit.commit()
    [event] = events.of(claimed.job_id)
    row = jobs.row(claimed.job_id)
    assert (event["status"], row["status"]) == (status, status)
    assert event["attempt_count"] == row["attempt_count"] == 7
    assert event["redrive_count"] == 0
    assert event["occurred_at"] == row["updated_at"]
    assert event["next_attempt_at"] == event["occurred_at"]
    assert event["id"].version == 7
    assert (event["dispatch_attempts"], event["delivered_at"], event["failed_at"]) == (
        0,
        None,
        None,
    )
    assert jobs.one(_TOGETHER) is True


@contextmanager
def refusing(jobs: Jobs, table: str, operation: str) -> Iterator[None]:
    """Let the database refuse one part of what ends a job."""
    jobs.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'refused'; END $$"
    )
    jobs.run(
        f"CREATE TRIGGER refusing AFTER {operation} ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    try:
        yield
    finally:
        jobs.run("DROP FUNCTION refuse() CASCADE")


PARTS = [
    ("job_queue", "DELETE"),
    ("notification_jobs", "UPDATE"),
    ("webhook_events", "INSERT"),
    ("rate_limit_reservations", "INSERT"),
]


@pytest.mark.parametrize(
    ("ending", "part"),
    [
        pytest.param(ending, part, id=f"{' '.join(part)}, {ending}")
        for part in PARTS
        for ending in ENDINGS
        # Only those with a limit have slots.
        if part[0] != "rate_limit_reservations" or ending.endswith(", limited")
    ],
)
def test_what_is_refused_in_part_has_not_happened_at_all(
    unit_of_work: UnitOfWorkFactory,
    jobs: Jobs,
    events: Events,
    claimed: Claim,
    ending: str,
    part: tuple[str, str],
) -> None:
    end, _ = ENDINGS[ending]
    with refusing(jobs, *part), pytest.raises(DBAPIError), unit_of_work() as unit:
        end(unit, claimed)
        unit.commit()
    assert jobs.row(claimed.job_id)["status"] == "PROCESSING"
    assert events.of(claimed.job_id) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_not_committed_has_not_happened(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events, claimed: Claim, ending: str
) -> None:
    end, _ = ENDINGS[ending]
    with unit_of_work() as unit:
        end(unit, claimed)
    assert jobs.row(claimed.job_id)["status"] == "PROCESSING"
    assert events.of(claimed.job_id) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_connection_that_breaks_before_the_commit_leaves_neither(
    unit_of_work: UnitOfWorkFactory,
    engine: Engine,
    jobs: Jobs,
    events: Events,
    claimed: Claim,
    ending: str,
) -> None:
    end, _ = ENDINGS[ending]
    with pytest.raises(DBAPIError), unit_of_work() as unit:
        end(unit, claimed)
        broken = unit._session.connection().connection.driver_connection
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as another:
            pid = getattr(broken, "info").backend_pid  # noqa: B009 - the driver's own
            another.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        unit.commit()
    assert jobs.row(claimed.job_id)["status"] == "PROCESSING"
    assert events.of(claimed.job_id) == []


@pytest.mark.parametrize("ending", [each for each in ENDINGS if not each.startswith("sent")])
def test_every_generation_has_an_event_of_its_own_and_redriving_has_none(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events, ending: str
) -> None:
    end, status = ENDINGS[ending]
    [job_id] = jobs.add()
    for _ in range(2):
        [claimed] = claim(unit_of_work)
        jobs.run(_LAST)
        with unit_of_work() as unit:
            end(unit, claimed)
            unit.commit()
        with unit_of_work() as unit:
            assert unit.operations.redrive([job_id], 6)
            unit.commit()
    told = [(each["status"], each["redrive_count"]) for each in events.of(job_id)]
    assert told == [(status, 0), (status, 1)]


@pytest.mark.parametrize("verdict", [Retry(1000, "no"), Release()], ids=["retried", "released"])
def test_what_goes_on_is_no_event(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events, verdict: Verdict
) -> None:
    [job_id] = jobs.add()
    [claimed] = claim(unit_of_work)
    with unit_of_work() as unit:
        attempted(verdict, limited=False)(unit, claimed)
        unit.commit()
    assert events.of(job_id) == []


@pytest.mark.parametrize("attempt", [1, 6], ids=["gives back", "grants one more"])
def test_what_recovery_lets_go_on_is_no_event(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events, attempt: int
) -> None:
    [job_id] = jobs.add(max_attempts=6)
    claim(unit_of_work)
    jobs.run(
        "UPDATE job_queue SET locked_at = now() - interval '1 hour', attempt_count = :attempt",
        attempt=attempt,
    )
    lease = timedelta(seconds=LEASE_S)
    with unit_of_work() as unit:
        [expired] = unit.recovery.lock_expired(1, lease)
        decided = Recovered(expired, recover(expired, LEASE_S))
        assert unit.recovery.write([decided], lease, limited=True) == {job_id}
        unit.commit()
    assert jobs.row(job_id)["status"] == "PENDING"
    assert events.of(job_id) == []


def test_a_cancelled_job_is_no_event(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events
) -> None:
    [job_id] = jobs.add()
    with unit_of_work() as unit:
        assert unit.operations.cancel(job_id) is not None
        unit.commit()
    assert jobs.row(job_id)["status"] == "CANCELLED"
    assert events.of(job_id) == []


def test_a_lost_claim_is_no_event(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events
) -> None:
    [job_id] = jobs.add()
    [claimed] = claim(unit_of_work)
    jobs.run("UPDATE job_queue SET claim_token = gen_random_uuid()")
    with unit_of_work() as unit:
        late = Result(claimed, Failed("no"), Ended(Status.FAILED, "no"), duration_ms=1)
        assert unit.results.record([late], limited=False) == set()
        unit.commit()
    assert events.of(job_id) == []


def test_a_batch_has_as_many_events_as_jobs_that_ended(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events
) -> None:
    jobs.add(30)
    verdicts: list[Verdict] = [Ended(Status.SENT), Ended(Status.FAILED, "no"), Retry(1000, "no")]
    results = [
        Result(claimed, Failed("no"), verdicts[number % 3], duration_ms=1)
        for number, claimed in enumerate(claim(unit_of_work, 30))
    ]
    with unit_of_work() as unit:
        unit.results.record(results, limited=True)
        unit.commit()
    told: list[UUID] = [
        result.claim.job_id for result in results if isinstance(result.verdict, Ended)
    ]
    assert len(told) == 20
    assert all(len(events.of(job_id)) == 1 for job_id in told)
    assert events.count("true") == 20
