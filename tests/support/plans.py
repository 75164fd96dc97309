"""What statements read: plans as they were carried out, on every PostgreSQL that is installed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Engine, event, text

from notify_queue.persistence.engine import direct_engine, pooled_engine
from notify_queue.persistence.schema import upgrade
from tests.support.postgres import Databases, sqlalchemy_url, start_server

_TABLES = (
    "job_queue",
    "notification_jobs",
    "rate_limit_gates",
    "rate_limit_reservations",
    "sent_jobs",
    "webhook_events",
)


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
        if not any(table in statement for table in _TABLES):
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
    def removed(self) -> int:
        """Rows that were read and not wanted."""
        return sum(
            node.get("Rows Removed by Filter", 0) for plan in self.plans for node in _walk(plan)
        )

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


@contextmanager
def unvacuumed(folder: Path) -> Iterator[Engine]:
    """A migrated database on a server of its own, whose statistics are what the test makes them."""
    server = start_server(folder)
    url = sqlalchemy_url(Databases(server.url("postgres")).empty())
    upgrade(direct_engine(url, "plans"))
    engine = pooled_engine(url, "plans", 2)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in _TABLES:
            connection.execute(text(f"ALTER TABLE {table} SET (autovacuum_enabled = off)"))
    yield engine
    engine.dispose()
    server.stop()


def set_statistics(engine: Engine, analysed: str) -> None:
    """Make them ``never`` made, made ``when tiny``, or made ``now``."""
    listed = ", ".join(f"'{table}'::regclass" for table in _TABLES)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        match analysed:
            case "never":
                connection.execute(text(f"DELETE FROM pg_statistic WHERE starelid IN ({listed})"))
            case "when tiny":
                connection.execute(
                    text(f"UPDATE pg_class SET reltuples = 2, relpages = 1 WHERE oid IN ({listed})")
                )
            case _:
                connection.execute(text(f"ANALYZE {', '.join(_TABLES)}"))
