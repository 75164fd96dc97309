"""What the hot statements read, on every PostgreSQL that is installed.

Statistics are as a queue has them at its worst: none at all, or of a table that was tiny. The
statements are the product's own, taken as they are sent.
"""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Ended, Result, Retry
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Failed
from notify_queue.persistence.unit_of_work import UnitOfWork, unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.plans import Explained, set_statistics, unvacuumed
from tests.support.postgres import installed_servers

FUTURE = 300_000
DUE = 50
AGING = Aging(5, timedelta(seconds=300))


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: str(folder.name))
def crowded(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """300,000 future HIGH jobs and 50 due LOW ones; the table has never been analysed."""
    with unvacuumed(request.param) as engine:
        jobs = Jobs(engine)
        jobs.add(FUTURE, priority=Priority.HIGH, due_in_s=86_400)
        jobs.add(DUE, priority=Priority.LOW, due_in_s=-1)
        yield engine


def _claim(unit: UnitOfWork, limit: int) -> int:
    return len(unit.claims.claim(unit.claims.lock_due(limit, AGING), "w", uuid4()))


@pytest.mark.parametrize("analysed", ["never", "when tiny", "now"])
def test_a_claim_reads_a_few_pages_a_row_past_any_number_of_future_jobs(
    crowded: Engine, analysed: str
) -> None:
    set_statistics(crowded, analysed)
    with Explained(crowded) as explained, unit_of_work_factory(crowded)() as unit:
        claimed = _claim(unit, DUE)
    assert claimed == DUE
    # Two index descents, the entry, the ledger row and its four new index entries each; the
    # future jobs would be thousands of pages.
    assert explained.pages <= 30 * DUE
    assert explained.indexes <= {
        "idx_job_queue_claimable",
        "pk_job_queue",
        "pk_notification_jobs",
    }
    assert "Seq Scan" not in explained.nodes


@pytest.mark.parametrize("analysed", ["never", "when tiny", "now"])
def test_an_idle_poll_costs_the_same_whatever_waits_in_the_future(
    crowded: Engine, analysed: str
) -> None:
    set_statistics(crowded, analysed)
    units = unit_of_work_factory(crowded)
    with units() as unit:
        assert _claim(unit, DUE) == DUE
        with Explained(crowded) as explained:
            assert unit.claims.lock_due(100, AGING) == []
            assert unit.claims.seconds_until_next() is not None
    assert explained.pages < 200
    assert explained.indexes <= {"idx_job_queue_claimable", "pk_job_queue"}
    assert "Seq Scan" not in explained.nodes


@pytest.mark.parametrize("analysed", ["never", "when tiny", "now"])
def test_recording_a_batch_reads_a_few_pages_a_row(crowded: Engine, analysed: str) -> None:
    set_statistics(crowded, analysed)
    with unit_of_work_factory(crowded)() as unit:
        claims = unit.claims.claim(unit.claims.lock_due(DUE, AGING), "w", uuid4())
        verdicts = [Ended(Status.SENT) if n % 2 else Retry(1_000, "later") for n in range(DUE)]
        results = [
            Result(claim, Failed("later"), verdict, duration_ms=1)
            for claim, verdict in zip(claims, verdicts, strict=True)
        ]
        with Explained(crowded) as explained:
            assert len(unit.results.record(results, limited=True)) == DUE
    assert len(explained.plans) == 2
    assert explained.pages <= 40 * DUE
    assert "Seq Scan" not in explained.nodes
