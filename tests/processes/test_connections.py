"""A worker has many deliveries in flight on few connections, and holds none while it waits."""

import pytest
from sqlalchemy import Engine

from tests.support.faults import WORKER, connections, idle_in_transaction
from tests.support.jobs import Jobs
from tests.support.processes import Processes
from tests.support.waiting import until

# A provider that is slow by far more than what counts as a moment here.
_LATENCY_MS = 1000
_MOMENT_MS = 500


@pytest.mark.parametrize(("concurrency", "most"), [(200, 2), (50, 5)])
def test_deliveries_in_flight_hold_no_connection(
    processes: Processes, jobs: Jobs, engine: Engine, concurrency: int, most: int
) -> None:
    worker = processes.running(
        "worker",
        WORKER_CONCURRENCY=concurrency,
        WORKER_BATCH_SIZE=concurrency,
        DATABASE_POOL_MAX=most,
        MOCK_LATENCY_MS=_LATENCY_MS,
        MOCK_FAILURE_RATE=0,
    )
    seen: list[tuple[int, int, int]] = []

    def over() -> bool:
        seen.append(
            (
                jobs.statuses().get("PROCESSING", 0),
                connections(engine, WORKER),
                idle_in_transaction(engine, WORKER, longer_than_ms=_MOMENT_MS),
            )
        )
        return jobs.statuses() == {"SENT": 2 * concurrency}

    jobs.add(2 * concurrency)
    until(over, "every job to be sent")

    # At times more: a slot is filled again while the last result in it is being written.
    assert max(in_flight for in_flight, _, _ in seen) >= concurrency
    assert 1 <= max(held for _, held, _ in seen) <= most
    assert max(idle for _, _, idle in seen) == 0
    assert worker.stop() == 0
    said = {line["msg"] for line in worker.lines()}
    assert said == {"app.started", "worker.started", "job.sent", "worker.drained"}
