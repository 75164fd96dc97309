"""What the hot statements read, on every PostgreSQL that is installed.

Statistics are as a queue has them at its worst: none at all, or of a table that was tiny. The
statements are the product's own, taken as they are sent.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest
from sqlalchemy import Engine, event, text

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Ended, Result, Retry
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Failed
from notify_queue.persistence.engine import direct_engine, pooled_engine
from notify_queue.persistence.schema import upgrade
from notify_queue.persistence.unit_of_work import UnitOfWork, unit_of_work_factory
from tests.support.jobs import Jobs
from tests.support.postgres import Databases, installed_servers, sqlalchemy_url, start_server

FUTURE = 300_000
DUE = 50
AGING = Aging(5, timedelta(seconds=300))


class Explained:
    """Runs each select and update of an engine a second way: EXPLAIN ANALYZE, then for real."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.plans: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        event.listen(self._engine, "before_cursor_execute", self._explain)
        return self

    def __exit__(self, *_exception: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._explain)

    def _explain(
        self, _connection: Any, cursor: Any, statement: str, parameters: Any, *_rest: Any
    ) -> None:
        if "job_queue" not in statement:
            return
        # An explained update writes; the savepoint takes that back before the real one runs.
        cursor.execute("SAVEPOINT explained")
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
        [[plans]] = cursor.fetchall()
        cursor.execute("ROLLBACK TO SAVEPOINT explained")
        self.plans.append((json.loads(plans) if isinstance(plans, str) else plans)[0]["Plan"])

    @property
    def pages(self) -> int:
        """Pages that all of them read."""
        return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in self.plans)

    @property
    def nodes(self) -> set[str]:
        """The kinds of plan node used on the queue's tables."""
        return {node["Node Type"] for plan in self.plans for node in _walk(plan)}

    @property
    def indexes(self) -> set[str]:
        """The indexes used."""
        return {
            node["Index Name"]
            for plan in self.plans
            for node in _walk(plan)
            if "Index Name" in node
        }


def _walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _walk(child)


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: str(folder.name))
def crowded(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """300,000 future HIGH jobs and 50 due LOW ones; the table has never been analysed."""
    folder: Path = request.param
    server = start_server(folder)
    databases = Databases(server.url("postgres"))
    url = sqlalchemy_url(databases.empty())
    migrating = direct_engine(url, "plans")
    upgrade(migrating)
    engine = pooled_engine(url, "plans", 2)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in ("job_queue", "notification_jobs"):
            connection.execute(text(f"ALTER TABLE {table} SET (autovacuum_enabled = off)"))
    jobs = Jobs(engine)
    jobs.add(FUTURE, priority=Priority.HIGH, due_in_s=86_400)
    jobs.add(DUE, priority=Priority.LOW, due_in_s=-1)
    yield engine
    engine.dispose()
    server.stop()


def _claim(unit: UnitOfWork, limit: int) -> int:
    return len(unit.claims.claim(unit.claims.lock_due(limit, AGING), "w", uuid4()))


@pytest.mark.parametrize("analysed", ["never", "when tiny", "now"])
def test_a_claim_reads_a_few_pages_a_row_past_any_number_of_future_jobs(
    crowded: Engine, analysed: str
) -> None:
    _statistics(crowded, analysed)
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
    _statistics(crowded, analysed)
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
    _statistics(crowded, analysed)
    with unit_of_work_factory(crowded)() as unit:
        claims = unit.claims.claim(unit.claims.lock_due(DUE, AGING), "w", uuid4())
        verdicts = [Ended(Status.SENT) if n % 2 else Retry(1_000, "later") for n in range(DUE)]
        results = [
            Result(claim, Failed("later"), verdict, duration_ms=1)
            for claim, verdict in zip(claims, verdicts, strict=True)
        ]
        with Explained(crowded) as explained:
            assert len(unit.results.record(results)) == DUE
    assert len(explained.plans) == 2
    assert explained.pages <= 40 * DUE
    assert "Seq Scan" not in explained.nodes


def _statistics(engine: Engine, analysed: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        match analysed:
            case "never":
                connection.execute(
                    text(
                        "DELETE FROM pg_statistic WHERE starelid IN"
                        " ('job_queue'::regclass, 'notification_jobs'::regclass)"
                    )
                )
            case "when tiny":
                connection.execute(
                    text(
                        "UPDATE pg_class SET reltuples = 2, relpages = 1 WHERE oid IN"
                        " ('job_queue'::regclass, 'notification_jobs'::regclass)"
                    )
                )
            case _:
                connection.execute(text("ANALYZE job_queue, notification_jobs"))
