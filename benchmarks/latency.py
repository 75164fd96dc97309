"""How late does a notification start on an idle system? In ms.

Two cases: due now (from its 201 to the provider) and due in three seconds (from its due time to the
provider). Each with the LISTEN hint and by polling alone. The provider takes no time and notes the
database's clock when it accepts; it and this script run on one machine, so one clock.
"""

import time
from datetime import UTC, datetime
from uuid import UUID, uuid4

import requests

from benchmarks.bench import Bench, bench, report, rounds, summary
from tests.support.processes import Process
from tests.support.waiting import until

EACH_ROUND = 10
ACCEPTED = "SELECT delivered_at FROM mock_provider_deliveries WHERE delivery_key = :key"


def main() -> None:
    """Measure and print."""
    count = rounds() * EACH_ROUND
    figures: dict[str, object] = {}
    for name, pool in {"hinted": 10, "polling alone": 1}.items():
        with bench() as setup:
            quiet = {"MOCK_LATENCY_MS": 0, "MOCK_FAILURE_RATE": 0}
            api = setup.processes.running("api")
            for _ in range(2):
                setup.processes.running("worker", DATABASE_POOL_MAX=pool, **quiet)
            _post(api, delaySeconds=1)
            figures[f"201 to start, due now, {name} (ms)"] = summary(_due_now(setup, api, count))
            figures[f"due to start, due in 3 s, {name} (ms)"] = summary(_later(setup, api, count))
    report("latency", figures)


def _due_now(setup: Bench, api: Process, count: int) -> list[float]:
    late = []
    for number in range(count):
        # Off the beat of the poll interval, so that polling shows its average and not its luck.
        time.sleep(0.2 + (number % 10) / 10)
        key, answered = _post(api, sendAt="2020-01-01T00:00:00Z")
        accepted = _accepted(setup, key)
        late.append((accepted - answered).total_seconds() * 1000)
    return late


def _later(setup: Bench, api: Process, count: int) -> list[float]:
    keys = []
    for number in range(count):
        time.sleep(0.1 + (number % 10) / 100)
        keys.append(_post(api, delaySeconds=3)[0])
    for key in keys:
        _accepted(setup, key)
    late = [
        setup.jobs.one(
            "SELECT extract(epoch FROM delivered_at - scheduled_at) * 1000"
            " FROM mock_provider_deliveries JOIN notification_jobs ON delivery_key = id::text"
            " WHERE id = :key",
            key=key,
        )
        for key in keys
    ]
    if min(late) < 0:
        raise RuntimeError("a notification was delivered before it was due")
    return [float(each) for each in late]


def _accepted(setup: Bench, key: UUID) -> datetime:
    """Wait for a delivery and return when the provider accepted it."""
    at: datetime = until(lambda: setup.jobs.one(ACCEPTED, key=str(key)), "its delivery")
    return at


def _post(api: Process, **when: object) -> tuple[UUID, datetime]:
    """Schedule one notification; return its id and when the answer was there."""
    answer = requests.post(
        f"{api.url}/notifications",
        json={
            "recipient": f"{uuid4()}@example.com",
            "channel": "EMAIL",
            "payload": {"subject": "hello", "text": "world"},
            "priority": "NORMAL",
            "idempotencyKey": str(uuid4()),
            **when,
        },
        timeout=10,
    )
    answered = datetime.fromtimestamp(time.time(), UTC)
    answer.raise_for_status()
    return UUID(answer.json()["id"]), answered


if __name__ == "__main__":
    main()
