"""What listings, bulk redrives and recovery read: a few pages a row, however deep they are."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cache

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.page import Filter, Place, place_of
from notify_queue.domain.redrive import Selection
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from tests.support.plans import Explained, set_statistics, unvacuumed
from tests.support.postgres import installed_servers

# Per status. Page 1,000 of 20 jobs begins at job 19,980.
JOBS = 25_000
LIMIT = 21
THOUSANDTH = 999 * (LIMIT - 1)
LEASE = timedelta(seconds=60)
ANALYSED = ["never", "when tiny", "now"]

_ENDED = text(
    """
    INSERT INTO notification_jobs (id, idempotency_key, recipient, channel, payload, priority,
        scheduled_at, outcome, ended_at, max_attempts, created_at)
    SELECT gen_random_uuid(), :status || n, CASE WHEN n > :jobs THEN 'old' ELSE 'new' END,
           'EMAIL', '{}', 2, now(), :status, now(), 6,
           now() - make_interval(days => 1, secs => n / 1000.0)
      FROM generate_series(1, 2 * :jobs) n
    """
)
_LIVE = text(
    """
    WITH job AS (
        INSERT INTO notification_jobs (id, idempotency_key, recipient, channel, payload, priority,
            scheduled_at, max_attempts, created_at)
        SELECT gen_random_uuid(), :status || n, CASE WHEN n > :jobs THEN 'old' ELSE 'new' END,
               'EMAIL', '{}', 2, now() + interval '1 day', 6,
               now() - make_interval(secs => n / 1000.0)
          FROM generate_series(1, 2 * :jobs) n
        RETURNING *)
    INSERT INTO job_queue (job_id, priority, due_at, recipient, max_attempts, created_at,
        claim_token, locked_by, locked_at, attempt_count)
    SELECT id, priority, scheduled_at, recipient, max_attempts, created_at,
           CASE :status WHEN 'PROCESSING' THEN gen_random_uuid() END,
           CASE :status WHEN 'PROCESSING' THEN 'w' END,
           CASE :status WHEN 'PROCESSING' THEN now() - interval '1 hour' END,
           CASE :status WHEN 'PROCESSING' THEN 1 ELSE 0 END
      FROM job
    """
)


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: str(folder.name))
def mixed(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """As many jobs in every status, and those that live are newest.

    Half of each are for one recipient and all newer than the other half: whoever picks the jobs of
    one out of an order of all reads past all those of the other.
    """
    with unvacuumed(request.param) as engine:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            for status in Status:
                statement = _LIVE if status in {"PENDING", "PROCESSING"} else _ENDED
                connection.execute(statement, {"status": status.value, "jobs": JOBS})
        yield engine


@cache
def before_the_thousandth(engine: Engine, wanted: Filter) -> Place:
    """The place of the last job on page 999."""
    with unit_of_work_factory(engine)() as unit:
        place, _ = unit.listing.page(wanted, None, THOUSANDTH)[-1]
    return place


@pytest.mark.parametrize("analysed", ANALYSED)
@pytest.mark.parametrize("recipient", [None, "old"])
@pytest.mark.parametrize("status", [None, *Status])
def test_every_listing_reads_as_little_at_page_1_and_at_page_1000(
    mixed: Engine, status: Status | None, recipient: str | None, analysed: str
) -> None:
    set_statistics(mixed, analysed)
    wanted = Filter(status, recipient)
    with unit_of_work_factory(mixed)() as unit:
        for after in (None, before_the_thousandth(mixed, wanted)):
            with Explained(mixed) as explained:
                assert len(unit.listing.page(wanted, after, LIMIT)) == LIMIT
            # For each row shown: a place in the order, its ledger row, its queue entry if it has
            # one, by an index each; and with every status wanted six ranges instead of one.
            assert explained.pages <= (12 if status else 24) * LIMIT
            assert explained.removed == 0
            assert not {"Seq Scan", "Bitmap Heap Scan"} & explained.nodes


@pytest.mark.parametrize("analysed", ANALYSED)
@pytest.mark.parametrize("recipient", [None, "new"])
@pytest.mark.parametrize("status", [Status.FAILED, Status.DEAD_LETTERED])
def test_a_bulk_redrive_reads_a_few_pages_a_row(
    mixed: Engine, status: Status, recipient: str | None, analysed: str
) -> None:
    set_statistics(mixed, analysed)
    with unit_of_work_factory(mixed)() as unit:
        [early] = unit.operations.redrive(
            unit.operations.lock_redrivable(Selection(status, recipient), 1), 6
        )
        far = Selection(status, recipient, after=place_of(early))
        for selection in (Selection(status, recipient), far):
            with Explained(mixed) as explained:
                listed = unit.operations.lock_redrivable(selection, 50)
                assert len(unit.operations.redrive(listed, 6)) == 50
            assert explained.removed == 0
            assert explained.pages <= 90 * 50
            assert "Seq Scan" not in explained.nodes


@pytest.mark.parametrize("analysed", ANALYSED)
def test_a_recovery_pass_reads_a_few_pages_a_row(mixed: Engine, analysed: str) -> None:
    set_statistics(mixed, analysed)
    with unit_of_work_factory(mixed)() as unit:
        with Explained(mixed) as explained:
            assert len(unit.recovery.lock_expired(50, LEASE)) == 50
            unit.recovery.seconds_until_next(LEASE)
        assert explained.pages <= 20 * 50
        assert explained.indexes == {"idx_job_queue_leases", "pk_notification_jobs"}
