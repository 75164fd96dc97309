"""How many events a second are dispatched, and what do webhooks cost the deliveries?

Events of jobs that have ended wait in the outbox; workers with nothing else to do post them to a
receiver that answers at once. Beside that: what one process can post at all, without a database.
Then a worker drains jobs to a provider that costs nothing, beside receivers of every kind, with
10,000 events behind those that are down.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from benchmarks.bench import Bench, bench, report, rounds, summary
from tests.support.ports import free_port
from tests.support.processes import Process
from tests.support.waiting import until

EVENTS = 10_000
JOBS = 20_000
_NOBODY = "no receiver"
_TOLD = "told@example.com"
_ENDED = """
WITH job AS (
    INSERT INTO notification_jobs (id, idempotency_key, recipient, channel, payload, priority,
                                   scheduled_at, max_attempts, attempt_count, outcome, ended_at)
    SELECT gen_random_uuid(), gen_random_uuid()::text, 'told@example.com', 'EMAIL', '{}', 2, now(),
           6, 1, 'SENT', now()
      FROM generate_series(1, :count)
    RETURNING id)
INSERT INTO webhook_events (id, job_id, status, attempt_count, occurred_at)
SELECT gen_random_uuid(), id, 'SENT', 1, now() FROM job
"""


def main() -> None:
    """Measure and print."""
    figures: dict[str, list[float]] = {}
    for _ in range(rounds()):
        with receiver("0") as url:
            figures.setdefault("bare POSTs of one process (a second)", []).append(_bare(url))
            for workers in (1, 2):
                with bench() as setup:
                    rate = _dispatched(setup, url, workers)
                figures.setdefault(f"events a second, workers: {workers}", []).append(rate)
        drained = dict(_drains())
        for name, rate in drained.items():
            figures.setdefault(f"jobs a second, {name}", []).append(rate)
            share = 100 * rate / drained[_NOBODY]
            figures.setdefault(f"against {_NOBODY} (%), {name}", []).append(share)
        with bench() as setup:
            figures.setdefault("to tell all when it is back (s)", []).append(_comes_back(setup))
        with bench() as setup, receiver("0") as url:
            figures.setdefault("sent to received (ms)", []).extend(_late(setup, url))
    report("webhooks", {name: summary(values) for name, values in figures.items()})


@contextmanager
def receiver(answer_ms: str, port: int | None = None) -> Iterator[str]:
    """Run a receiver and give its URL; ``never`` is one that does not answer."""
    port = port or free_port()
    command = [sys.executable, "-m", "benchmarks.receiver", str(port), answer_ms]
    process = subprocess.Popen(command)
    try:
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        process.kill()
        process.wait()


def _bare(url: str) -> float:
    command = [sys.executable, "-m", "benchmarks.bare_posts", url, str(EVENTS)]
    _listening(url)
    return float(subprocess.run(command, capture_output=True, check=True).stdout)


def _listening(url: str) -> None:
    address = urlsplit(url)

    def connects() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((address.hostname, address.port)) == 0

    until(connects, "the receiver listens")


def _dispatched(setup: Bench, url: str, workers: int) -> float:
    """Events a second, from the first that was recorded to the last."""
    setup.jobs.run(_ENDED, count=EVENTS)
    setup.jobs.run("ANALYZE")
    running = [_worker(setup, WEBHOOK_URL=url) for _ in range(workers)]
    while setup.jobs.one("SELECT count(*) FROM webhook_events WHERE delivered_at IS NULL"):
        time.sleep(0.1)
    for worker in running:
        worker.stop(signal.SIGTERM)
    seconds = setup.jobs.one(
        "SELECT extract(epoch FROM max(delivered_at) - min(delivered_at)) FROM webhook_events"
    )
    return EVENTS / float(seconds)


def _drains() -> Iterator[tuple[str, float]]:
    """The same drain with nobody to be told, and beside receivers in every state."""
    with bench() as setup:
        yield _NOBODY, _drained(setup, 0)
    with bench() as setup, receiver("never") as url:
        yield (
            f"a receiver that never answers, {EVENTS} events behind it",
            _drained(setup, EVENTS, WEBHOOK_URL=url),
        )
    with bench() as setup:
        url = f"http://127.0.0.1:{free_port()}/hook"
        yield (
            f"a receiver that refuses, {EVENTS} events behind it",
            _drained(setup, EVENTS, WEBHOOK_URL=url),
        )
    with bench() as setup, receiver("0") as url:
        yield "a receiver that answers at once", _drained(setup, 0, WEBHOOK_URL=url)


def _drained(setup: Bench, events: int, **settings: str) -> float:
    """Jobs a second, from the first that ended to the last."""
    if events:
        setup.jobs.run(_ENDED, count=events)
    setup.jobs.add(JOBS)
    setup.jobs.run("ANALYZE")
    worker = _worker(setup, **settings)
    while setup.jobs.one("SELECT count(*) FROM job_queue"):
        time.sleep(0.1)
    worker.stop(signal.SIGTERM)
    seconds = setup.jobs.one(
        "SELECT extract(epoch FROM max(ended_at) - min(ended_at)) FROM notification_jobs"
        " WHERE recipient <> :told",
        told=_TOLD,
    )
    return JOBS / float(seconds)


def _comes_back(setup: Bench) -> float:
    """A receiver that never answered does so after the drain: seconds until it has every event."""
    setup.jobs.run(_ENDED, count=EVENTS)
    setup.jobs.add(JOBS)
    port = free_port()
    with receiver("never", port) as url:
        _listening(url)
        worker = _worker(setup, WEBHOOK_URL=url)
        while setup.jobs.one("SELECT count(*) FROM job_queue"):
            time.sleep(0.1)
    with receiver("0", port) as url:
        _listening(url)
        began = time.monotonic()
        while setup.jobs.one("SELECT count(*) FROM webhook_events WHERE delivered_at IS NULL"):
            time.sleep(0.1)
        took = time.monotonic() - began
    worker.stop(signal.SIGTERM)
    assert setup.jobs.one("SELECT count(*) FROM webhook_events") == EVENTS + JOBS
    return took


def _late(setup: Bench, url: str) -> list[float]:
    """From the end of a job to the record of its event, on an idle system."""
    _listening(url)
    worker = _worker(setup, WEBHOOK_URL=url, MOCK_LATENCY_MS="0")
    worker.wait_until_healthy()
    for number in range(1, 21):
        setup.jobs.add(1)
        until(
            lambda number=number: (  # type: ignore[misc] # its type is that of the default
                setup.jobs.one("SELECT count(*) FROM webhook_events WHERE delivered_at IS NOT NULL")
                == number
            ),
            "the event was received",
        )
    return [
        float(ms)
        for ms in setup.jobs.one(
            "SELECT array_agg(extract(epoch FROM delivered_at - occurred_at) * 1000)"
            " FROM webhook_events"
        )
    ]


def _worker(setup: Bench, **settings: str) -> Process:
    return setup.processes.start_program(
        "benchmarks.noop_worker",
        "worker",
        {
            "RATE_LIMIT_MAX_NOTIFICATIONS": 0,
            "WORKER_CONCURRENCY": 500,
            "WORKER_BATCH_SIZE": 500,
            "WEBHOOK_ALLOW_PRIVATE": "true",
            "LOG_LEVEL": "error",
            **settings,
        },
    )


if __name__ == "__main__":
    main()
