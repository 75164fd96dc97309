"""What the statements of the limit read: a few pages a row, however much waits and was sent."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.aging import Aging
from notify_queue.domain.rate_limit import RateLimit
from notify_queue.persistence.unit_of_work import UnitOfWork, unit_of_work_factory
from tests.support.plans import Explained, set_statistics, unvacuumed
from tests.support.postgres import installed_servers

PARKED = 100_000
GATES = 20_000
HOT = "hot"
AFTER = timedelta(seconds=300)
LIMIT = RateLimit(10, timedelta(hours=2))
OTHER = RateLimit(7, timedelta(hours=2))
ANALYSED = ["never", "when tiny", "now"]
# To find that there is nothing, with the statistics of a tiny table: until the table has some
# thousand pages the planner expects less of an index, and reads it all in a few milliseconds.
FROM_END_TO_END = 1_000
SOME = [f"r{n}" for n in range(100)]

_GATES = """
    INSERT INTO rate_limit_gates
    SELECT CASE WHEN n = 0 THEN 'hot' ELSE 'r' || (n - 1) END,
           now() + make_interval(secs => 60 + n), 1 + n % 3, 10, 7200
      FROM generate_series(0, :gates - 1) n
"""
_PARKED = """
    WITH job AS (
        INSERT INTO notification_jobs
            (id, idempotency_key, recipient, channel, payload, priority, scheduled_at, max_attempts)
        SELECT gen_random_uuid(), 'k' || n,
               CASE WHEN n % 2 = 0 THEN 'hot' ELSE 'r' || (n / 2) % (:gates - 1) END,
               'EMAIL', '{}', 1 + n % 3, now() - make_interval(secs => n), 6
          FROM generate_series(1, :parked) n
        RETURNING id, priority, scheduled_at, recipient, max_attempts, created_at)
    INSERT INTO job_queue (job_id, priority, due_at, recipient, max_attempts, created_at,
        rate_limited, gate)
    SELECT *, true, recipient FROM job
"""
_SLOTS = """
    INSERT INTO rate_limit_reservations
    SELECT job_id, recipient, now() - CASE WHEN nth <= 10 THEN interval '1 second' * nth
                                           ELSE interval '3 hours' + interval '1 second' * nth END
      FROM (SELECT *, row_number() OVER (PARTITION BY recipient) AS nth FROM job_queue) numbered
"""


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: str(folder.name))
def crowded(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, int]]:
    """100,000 parked jobs at 20,000 gates, and how many pages an idle poll read before them.

    Half of them are for one recipient, the others for all the rest. All were tried before; as many
    as the limit allows hold a slot, and what the others had for longer is not pruned yet.
    """
    with unvacuumed(request.param) as engine:
        empty = _idle(engine)
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            # Half the time of filling would go into looking up keys that we know are there.
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text(_GATES), {"gates": GATES})
            connection.execute(text(_PARKED), {"gates": GATES, "parked": PARKED})
            connection.execute(text(_SLOTS))
        yield engine, empty


def _idle(engine: Engine) -> int:
    """Let a poll find nothing and return how many pages it read."""
    with Explained(engine) as explained, unit_of_work_factory(engine)() as unit:
        assert unit.gates.due(100, AFTER) == []
        assert unit.claims.lock_due(100, Aging(10, AFTER)) == []
        unit.claims.seconds_until_next()
        unit.gates.seconds_until_next()
    assert len(explained.plans) >= 5
    return explained.pages


def _idle_pages(analysed: str) -> int:
    return 40 if analysed == "now" else FROM_END_TO_END


def _one_job_each(unit: UnitOfWork, recipients: list[str]) -> list[UUID]:
    one_each = text(
        "SELECT DISTINCT ON (recipient) job_id FROM job_queue WHERE recipient = ANY(:recipients)"
    )
    return list(unit._session.scalars(one_each, {"recipients": recipients}))


@pytest.mark.parametrize("analysed", ANALYSED)
def test_an_idle_poll_reads_as_little_with_a_hundred_thousand_parked_as_with_none(
    crowded: tuple[Engine, int], analysed: str
) -> None:
    engine, empty = crowded
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # What other tests wrote and took back is no part of this.
        connection.execute(text("VACUUM rate_limit_gates, job_queue"))
    set_statistics(engine, analysed)
    # The indexes are one or two levels deeper, at a dozen descents.
    assert _idle(engine) <= empty + 30


@pytest.mark.parametrize("analysed", ANALYSED)
@pytest.mark.parametrize("recipients", [SOME, [HOT]], ids=["many", "hot"])
def test_a_look_reads_a_few_pages_a_recipient(
    crowded: tuple[Engine, int], recipients: list[str], analysed: str
) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    with unit_of_work_factory(engine)() as unit, Explained(engine) as explained:
        standing = unit.recipients.look(recipients, LIMIT)
    assert standing.gated == set(recipients)
    # Of each recipient: who runs, whose slots count, and its gate.
    assert explained.pages <= 15 * len(recipients) + 2 * len(standing.slots)


@pytest.mark.parametrize("analysed", ANALYSED)
def test_the_best_of_the_parked_are_found_without_reading_the_others(
    crowded: tuple[Engine, int], analysed: str
) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    for free in (dict.fromkeys(SOME, 1), {HOT: 10}):
        with unit_of_work_factory(engine)() as unit, Explained(engine) as explained:
            locked = unit.parking.lock_next(free, [], AFTER)
        assert len(locked) == sum(free.values())
        assert explained.pages <= 12 * len(locked)
        assert "idx_job_queue_parked" in explained.indexes
        assert "Seq Scan" not in explained.nodes
        holders = [each.job_id for each in locked]
        with unit_of_work_factory(engine)() as unit, Explained(engine) as explained:
            assert len(unit.parking.lock_next({}, holders, AFTER)) == len(locked)
        assert explained.pages <= 12 * len(locked)


@pytest.mark.parametrize("analysed", ANALYSED)
def test_due_gates_are_found_without_reading_the_others(
    crowded: tuple[Engine, int], analysed: str
) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    with unit_of_work_factory(engine)() as unit:
        unit.gates.open_now(SOME, LIMIT)
        with Explained(engine) as explained:
            assert len(unit.gates.due(50, AFTER)) == len(SOME)
    assert explained.pages <= 5 * len(SOME)
    assert explained.removed == 0
    assert explained.indexes == {"idx_rate_limit_gates_opening"}


@pytest.mark.parametrize("analysed", ANALYSED)
@pytest.mark.parametrize("step", ["unpark", "park", "settle", "open_now"])
@pytest.mark.parametrize("recipients", [SOME, [HOT]], ids=["many", "hot"])
def test_gates_and_their_jobs_are_written_for_a_few_pages_each(
    crowded: tuple[Engine, int], recipients: list[str], step: str, analysed: str
) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    with unit_of_work_factory(engine)() as unit:
        locked = unit.parking.lock_next(dict.fromkeys(recipients, 1), [], AFTER)
        opens_at = dict.fromkeys(recipients, unit.reading.now())
        with Explained(engine) as explained:
            match step:
                case "unpark":
                    unit.parking.unpark([each.job_id for each in locked])
                case "park":
                    unit.gates.make(locked, opens_at, LIMIT)
                    unit.parking.park(locked)
                case "settle":
                    unit.gates.settle(opens_at, LIMIT)
                case _:
                    unit.gates.open_now(recipients, LIMIT)
    assert explained.plans
    assert explained.pages <= 40 * len(recipients)


@pytest.mark.parametrize("analysed", ANALYSED)
def test_gates_of_another_limit_are_found_without_reading_those_of_this_one(
    crowded: tuple[Engine, int], analysed: str
) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    with unit_of_work_factory(engine)() as unit:
        for limit, found in ((LIMIT, 0), (OTHER, 500)):
            with Explained(engine) as explained:
                assert len(unit.gates.set_under_another(limit, 500)) == found
            assert explained.pages <= _idle_pages(analysed) + 4 * found


@pytest.mark.parametrize("analysed", ANALYSED)
def test_pruning_reads_a_few_pages_a_row(crowded: tuple[Engine, int], analysed: str) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    for window, pruned in ((LIMIT.window, 500), (timedelta(days=9), 0)):
        with unit_of_work_factory(engine)() as unit, Explained(engine) as explained:
            assert unit.recipients.prune(window, 500) == pruned
        assert explained.pages <= _idle_pages(analysed) + 15 * pruned


@pytest.mark.parametrize("analysed", ANALYSED)
def test_a_slot_is_taken_for_a_few_pages(crowded: tuple[Engine, int], analysed: str) -> None:
    engine, _ = crowded
    set_statistics(engine, analysed)
    with unit_of_work_factory(engine)() as unit:
        job_ids = _one_job_each(unit, SOME)
        with Explained(engine) as explained:
            unit.recipients.reserve(job_ids, timedelta(0))
    assert len(job_ids) == len(SOME)
    assert explained.pages <= 40 * len(SOME)
    assert "Seq Scan" not in explained.nodes
