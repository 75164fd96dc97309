"""How long does it take until the jobs of a dead worker are delivered by another?

A worker is killed with deliveries running. Two figures: from the end of its leases to the delivery
by the worker that is left, and how many expired leases a second one process takes back.
"""

import signal
import time

from benchmarks.bench import Bench, bench, report, rounds, summary
from notify_queue.maintenance.recover import PASS_SIZE
from tests.support.waiting import until

RUNNING = 50
LEASE_S = 4
EXPIRED = 10_000


def main() -> None:
    """Measure and print."""
    late, rates = [], []
    for _ in range(rounds()):
        with bench() as setup:
            late += _after_a_death(setup)
        with bench() as setup:
            rates.append(_taken_back(setup))
    report(
        "recovery",
        {
            "end of the lease to the provider's acceptance (ms)": summary(late),
            "expired leases taken back (jobs/s)": summary(rates),
        },
    )


def _after_a_death(setup: Bench) -> list[float]:
    settings = {
        "JOB_VISIBILITY_TIMEOUT_SECONDS": LEASE_S,
        "PROVIDER_TIMEOUT_MS": 1_500,
        "MOCK_FAILURE_RATE": 0,
    }
    dying = setup.processes.running("worker", **settings, MOCK_LATENCY_MS=1_400)
    jobs = setup.jobs
    jobs.add(RUNNING)
    until(lambda: jobs.statuses().get("PROCESSING") == RUNNING, "all deliveries to run")
    dying.stop(signal.SIGKILL)
    ends = jobs.one("SELECT max(locked_at) + make_interval(secs => :s) FROM job_queue", s=LEASE_S)
    setup.processes.running("worker", **settings, MOCK_LATENCY_MS=0)
    until(lambda: jobs.statuses() == {"SENT": RUNNING}, "all of them to be sent")
    return [
        float(late)
        for late in jobs.one(
            "SELECT array_agg(extract(epoch FROM delivered_at - :ends) * 1000)"
            " FROM mock_provider_deliveries",
            ends=ends,
        )
    ]


def _taken_back(setup: Bench) -> float:
    jobs = setup.jobs
    jobs.add(EXPIRED, due_in_s=-1)
    # Due far from now, so that nothing but recovery works on them.
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'bench',"
        " locked_at = now() - interval '1 hour', attempt_count = 1,"
        " due_at = now() + interval '1 day'"
    )
    worker = setup.processes.start("worker")
    waiting = "SELECT count(*) FROM job_queue WHERE claim_token IS NOT NULL"
    while jobs.one(waiting):
        time.sleep(0.02)
    worker.stop(signal.SIGTERM)
    seconds = jobs.one(
        "SELECT extract(epoch FROM max(updated_at) - min(updated_at)) FROM notification_jobs"
    )
    # Between the first pass and the last.
    return (EXPIRED - PASS_SIZE) / float(seconds)


if __name__ == "__main__":
    main()
