"""What the outbox's statements read: a few pages a row, however many events were delivered."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.redrive import GivenUpEvents
from notify_queue.domain.webhook_event import Answered, Posted, Received
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from tests.support.events import Events
from tests.support.plans import Explained, set_statistics, unvacuumed
from tests.support.postgres import installed_servers

DELIVERED, WAITING = 100_000, 1_000
ANALYSED = ["never", "when tiny", "now"]
BATCH = 20

_EVENTS = """
    INSERT INTO webhook_events (id, job_id, status, attempt_count, occurred_at, next_attempt_at,
                                dispatch_attempts, delivered_at, failed_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'SENT', 1, now(), now() - make_interval(secs => n),
           1, CASE WHEN n % 500 > 0 THEN now() END, CASE WHEN n % 500 = 0 THEN now() END
      FROM generate_series(1, :delivered) n
"""


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: str(folder.name))
def crowded(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """100,000 events that are over, some of them given up, and 1,000 that wait, half of them due.

    The jobs of those that are over do not matter here.
    """
    with unvacuumed(request.param) as engine:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(_EVENTS), {"delivered": DELIVERED})
        Events(engine).add(WAITING // 2)
        Events(engine).add(WAITING // 2, due_in_s=600)
        yield engine


@pytest.fixture(params=ANALYSED)
def explained(crowded: Engine, request: pytest.FixtureRequest) -> Iterator[Explained]:
    """The statements of a test, with statistics of every age."""
    set_statistics(crowded, request.param)
    with Explained(crowded) as explained:
        yield explained


def test_events_are_found_taken_and_recorded_in_a_few_pages_each(
    crowded: Engine, explained: Explained
) -> None:
    with unit_of_work_factory(crowded)() as unit:
        due = unit.outbox.lock_due(BATCH)
        dispatches = unit.outbox.take(due[1:], timedelta(seconds=10))
        received = [Posted(each, Answered(200), Received()) for each in dispatches]
        recorded = unit.webhook_results.record(received)
        unit.outbox.give_up([(due[0].event.event_id, None)])
    assert recorded == [True] * (BATCH - 1)
    assert explained.nodes.isdisjoint({"Seq Scan", "Sort"})
    assert explained.indexes == {"idx_webhook_events_due", "pk_webhook_events"}
    # Found, taken, locked and written: the last two with the new entries of three indexes.
    assert explained.pages < 60 * BATCH


def test_taking_an_event_writes_to_no_index(crowded: Engine) -> None:
    # Those of this transaction, and of others before it that the server has not told of yet.
    updates = text(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables"
        " WHERE relname = 'webhook_events'"
    )
    with unit_of_work_factory(crowded)() as unit:
        before = unit._session.execute(updates).one()
        unit.outbox.take(unit.outbox.lock_due(1), timedelta(seconds=10))
        after = unit._session.execute(updates).one()
    assert [after[0] - before[0], after[1] - before[1]] == [1, 1]


def test_looking_for_the_next_event_reads_a_few_pages(
    crowded: Engine, explained: Explained
) -> None:
    with unit_of_work_factory(crowded)() as unit:
        assert unit.outbox.seconds_until_next() is not None
    assert explained.indexes == {"idx_webhook_events_due"}
    # All that are due, since each of them could be leased, and some that were rewritten since.
    assert explained.pages < 100


def test_given_up_events_are_found_without_reading_the_others(
    crowded: Engine, explained: Explained
) -> None:
    with unit_of_work_factory(crowded)() as unit:
        listed = unit.revival.lock(GivenUpEvents(), BATCH)
        unit.revival.revive(listed)
    assert len(listed) == BATCH
    assert "Seq Scan" not in explained.nodes
    assert explained.indexes == {"idx_webhook_events_given_up", "pk_webhook_events"}
    assert explained.pages < 60 * BATCH
