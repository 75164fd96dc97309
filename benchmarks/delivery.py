"""How many jobs a second does one worker deliver to a provider that takes 100 ms?

With 200 deliveries in flight the provider allows 2,000 a second; the figure is the share of that.
While it runs, the worker's connections are sampled: how many, and whether any sat idle inside a
transaction.
"""

import signal
import time
from typing import Any

from sqlalchemy import text

from benchmarks.bench import Bench, bench, report, rounds, summary

JOBS = 10_000
LATENCY_MS = 100
CONCURRENCY = 200
POOL = 10
ALLOWED = CONCURRENCY * 1000 / LATENCY_MS

SAMPLE = text(
    "SELECT count(*) AS connections,"
    " coalesce(max(extract(epoch FROM clock_timestamp() - state_change) * 1000)"
    " FILTER (WHERE state = 'idle in transaction'), 0) AS idle_in_transaction_ms"
    " FROM pg_stat_activity WHERE application_name = 'notify-queue worker'"
)


def main() -> None:
    """Measure and print."""
    rates, connections, idle_ms = [], [], []
    for _ in range(rounds()):
        with bench() as setup:
            setup.jobs.add(JOBS)
            rate, samples = _drain(setup)
        rates.append(rate)
        connections.append(max(sample.connections for sample in samples))
        idle_ms.append(float(max(sample.idle_in_transaction_ms for sample in samples)))
    report(
        "delivery",
        {
            "jobs/s": summary(rates),
            "share of what the provider allows": summary([100 * r / ALLOWED for r in rates]),
            "most connections (pool is 10)": max(connections),
            "longest idle in transaction (ms)": summary(idle_ms),
        },
    )


def _drain(setup: Bench) -> tuple[float, list[Any]]:
    worker = setup.processes.start(
        "worker",
        MOCK_LATENCY_MS=LATENCY_MS,
        MOCK_FAILURE_RATE=0,
        WORKER_CONCURRENCY=CONCURRENCY,
        DATABASE_POOL_MAX=POOL,
    )
    samples = []
    while setup.jobs.one("SELECT count(*) FROM job_queue"):
        with setup.engine.begin() as connection:
            samples.append(connection.execute(SAMPLE).one())
        time.sleep(0.05)
    worker.stop(signal.SIGTERM)
    seconds = setup.jobs.one(
        "SELECT extract(epoch FROM max(delivered_at) - min(delivered_at))"
        " FROM mock_provider_deliveries"
    )
    return JOBS / float(seconds), samples


if __name__ == "__main__":
    main()
