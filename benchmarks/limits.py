"""What does the rate limit cost, and how late is it?

Four figures. The rate at which one worker drains jobs of as many recipients, with the limit on and
off, to a provider that costs nothing. For one recipient with thousands of jobs waiting: how long
after a slot opens the next call is made, how many rows are updated for a job in all, and what an
idle pass costs beside one with nothing parked.
"""

import itertools
import signal
import time
from datetime import datetime, timedelta
from uuid import uuid4

from benchmarks.bench import Bench, bench, report, rounds, summary
from notify_queue.domain.job import Priority
from notify_queue.domain.rate_limit import RateLimit
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from notify_queue.worker.claim import ClaimDueJobs
from tests.support.waiting import until

DISTINCT = 20_000
CROWD = 10_000
# A slot every 200 ms.
MOST, WINDOW_S = 5, 1
CALLS = 60
PASSES = 300


def main() -> None:
    """Measure and print."""
    free, limited, late, updates, idle, crowded = [], [], [], [], [], []
    for _ in range(rounds()):
        with bench() as setup:
            free.append(_drained(setup, 0))
        with bench() as setup:
            limited.append(_drained(setup, 10))
        with bench() as setup:
            idle += _passes(setup)
            late += _late(setup)
            crowded += _passes(setup)
        with bench() as setup:
            updates.append(_updates(setup))
    shares = [100 * on / off for on, off in zip(limited, free, strict=True)]
    report(
        "limits",
        {
            "limit off (jobs/s)": summary(free),
            "limit on, as many recipients as jobs (jobs/s)": summary(limited),
            "on against off (%)": summary(shares),
            f"slot to the next call, {CROWD} jobs for one recipient (ms)": summary(late),
            f"rows updated for a job, {CROWD} jobs for one recipient": summary(updates),
            "idle pass, nothing parked (ms)": summary(idle),
            f"idle pass, {CROWD} jobs parked (ms)": summary(crowded),
        },
    )


def _drained(setup: Bench, most: int) -> float:
    """Jobs a second, from the first that ended to the last."""
    setup.jobs.add(DISTINCT)
    setup.jobs.run("ANALYZE")
    worker = setup.processes.start_program(
        "benchmarks.noop_worker",
        "worker",
        {
            "RATE_LIMIT_MAX_NOTIFICATIONS": most,
            "WORKER_CONCURRENCY": 500,
            "WORKER_BATCH_SIZE": 500,
            "LOG_LEVEL": "warn",
        },
    )
    while setup.jobs.one("SELECT count(*) FROM job_queue"):
        time.sleep(0.1)
    worker.stop(signal.SIGTERM)
    seconds = setup.jobs.one(
        "SELECT extract(epoch FROM max(ended_at) - min(ended_at)) FROM notification_jobs"
    )
    return DISTINCT / float(seconds)


def _late(setup: Bench) -> list[float]:
    """How long after a slot opened each call was made, in ms.

    A slot opens a window after the call that held it. The provider takes no time and notes when it
    accepts; recording that is part of what is measured.
    """
    for priority in Priority:
        setup.jobs.add(CROWD // len(Priority) + 1, recipient="one@example.com", priority=priority)
    settings = {
        "MOCK_LATENCY_MS": 0,
        "MOCK_FAILURE_RATE": 0,
        "RATE_LIMIT_MAX_NOTIFICATIONS": MOST,
        "RATE_LIMIT_WINDOW_SECONDS": WINDOW_S,
    }
    workers = [setup.processes.start("worker", **settings) for _ in range(2)]
    accepted = "SELECT array_agg(delivered_at ORDER BY delivered_at) FROM mock_provider_deliveries"
    until(
        lambda: setup.jobs.one("SELECT count(*) FROM mock_provider_deliveries") >= CALLS,
        "enough calls",
        60,
    )
    for worker in workers:
        worker.stop(signal.SIGTERM)
    times: list[datetime] = setup.jobs.one(accepted)
    window = timedelta(seconds=WINDOW_S)
    held = zip(times[MOST:], times[:-MOST], strict=True)
    late = [(at - (holder + window)).total_seconds() * 1000 for at, holder in held]
    # The first ones waited for 10,000 jobs to be parked.
    steady = late[2 * MOST :]
    if min(steady) < 0:
        raise RuntimeError("a call was made before its slot opened")
    _most_urgent_first(setup)
    return steady


def _most_urgent_first(setup: Bench) -> None:
    priorities: list[int] = setup.jobs.one(
        "SELECT array_agg(priority ORDER BY delivered_at)"
        " FROM mock_provider_deliveries JOIN notification_jobs ON delivery_key = id::text"
    )
    if any(later > earlier for earlier, later in itertools.pairwise(priorities)):
        raise RuntimeError("a less urgent job went first")


def _updates(setup: Bench) -> float:
    """Rows of both tables updated for a job, from the server's own statistics."""
    setup.jobs.add(CROWD, recipient="one@example.com")
    worker = setup.processes.start_program(
        "benchmarks.noop_worker",
        "worker",
        {
            "RATE_LIMIT_MAX_NOTIFICATIONS": CROWD // 10,
            "RATE_LIMIT_WINDOW_SECONDS": 1,
            "LOG_LEVEL": "warn",
        },
    )
    while setup.jobs.one("SELECT count(*) FROM job_queue"):
        time.sleep(0.1)
    # Its sessions end, and so hand in what they counted.
    worker.stop(signal.SIGTERM)
    counted = (
        "SELECT sum(n_tup_upd) FROM pg_stat_user_tables"
        " WHERE relname IN ('job_queue', 'notification_jobs')"
    )
    until(lambda: (setup.jobs.one(counted) or 0) >= 2 * CROWD, "the statistics")
    return float(setup.jobs.one(counted)) / CROWD


def _passes(setup: Bench) -> list[float]:
    """What passes cost that find nothing, in ms."""
    step = ClaimDueJobs(
        unit_of_work_factory(setup.engine),
        worker_id="bench",
        visibility_timeout_s=60,
        aging_share=0.1,
        aging_after=timedelta(seconds=300),
        new_token=uuid4,
        # Longer than all of this takes: what is parked stays so.
        rate_limit=RateLimit(MOST, timedelta(hours=1)),
    )
    # Whatever was set for the window of before is set for this one.
    setup.jobs.run("UPDATE rate_limit_gates SET opens_at = now() + interval '1 hour'")
    took = []
    for _ in range(PASSES):
        began = time.perf_counter()
        if step(100).claims:
            raise RuntimeError("this pass was not idle")
        took.append((time.perf_counter() - began) * 1000)
    return took


if __name__ == "__main__":
    main()
