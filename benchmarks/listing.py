"""What does a page of a listing cost: page 1 and page 1,000, in a small table and a large one?

Each filter is asked over HTTP, as callers do. The large table has a hundred times the jobs of the
small one, half of them future ones that are newer than all the others.
"""

import sys
import time
from statistics import median

import requests
from sqlalchemy import text

from benchmarks.bench import Bench, bench, report, rounds
from notify_queue.domain.lifecycle import Status

SMALL = 10_000
LARGE = 1_000_000
PAGE = 20
Query = dict[str, str | int | None]
DEEP = 1_000
ASKED = 20

_ENDED = text(
    """
    INSERT INTO notification_jobs (id, idempotency_key, recipient, channel, payload, priority,
        scheduled_at, outcome, ended_at, max_attempts, created_at)
    SELECT gen_random_uuid(), 'e' || n, 'user' || n % 4, 'EMAIL', '{"subject": "hello"}', 2, now(),
           (ARRAY['SENT', 'FAILED', 'DEAD_LETTERED', 'CANCELLED'])[1 + n % 5 % 4], now(), 6,
           now() - make_interval(days => 1, secs => n / 100.0)
      FROM generate_series(1, :jobs) n
    """
)


def main() -> None:
    """Measure and print the slowest filter and the ratios of all of them."""
    with bench() as small, bench() as large:
        _fill(small, SMALL)
        _fill(large, LARGE)
        of_small, of_large = (each.processes.running("api").url for each in (small, large))
        figures: dict[str, object] = {}
        for status in (None, *Status):
            for recipient in (None, "user1"):
                name = f"{status or 'any status'}, {'one recipient' if recipient else 'everybody'}"
                wanted: Query = {"limit": PAGE, "status": status, "recipient": recipient}
                figures[name] = _compare(of_small, of_large, wanted)
    report("listing", figures)


def _fill(setup: Bench, jobs: int) -> None:
    with setup.engine.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(_ENDED, {"jobs": jobs // 2})
    for number in range(4):
        setup.jobs.add(jobs // 8, due_in_s=86_400, recipient=f"user{number}")
    setup.jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'bench',"
        " locked_at = now(), attempt_count = 1 WHERE job_id IN"
        " (SELECT job_id FROM job_queue ORDER BY created_at, job_id LIMIT 200)"
    )


def _compare(small: str, large: str, wanted: Query) -> dict[str, object]:
    """Page 1 of both, in turns, and a deep page of the large one where it has so many."""
    deep = _cursor(large, wanted)
    asked: dict[str, list[float]] = {"small": [], "large": [], "deep": []}
    for _ in range(ASKED * rounds()):
        asked["small"].append(_time(small, wanted))
        asked["large"].append(_time(large, wanted))
        if deep is not None:
            asked["deep"].append(_time(large, wanted | {"cursor": deep}))
    first = median(asked["large"])
    figures: dict[str, object] = {
        "page 1 of a million jobs (ms)": round(first, 1),
        "against page 1 of ten thousand": round(first / median(asked["small"]), 2),
    }
    if deep is not None:
        figures[f"page {DEEP} against page 1"] = round(median(asked["deep"]) / first, 2)
    return figures


def _cursor(api: str, wanted: Query) -> str | None:
    """The cursor of page 1,000, by pages of a hundred."""
    cursor = None
    for _ in range((DEEP - 1) * PAGE // 100):
        query: Query = wanted | {"limit": 100, "cursor": cursor}
        cursor = requests.get(f"{api}/notifications", params=query, timeout=10).json()["nextCursor"]
        if cursor is None:
            return None
    return str(cursor)


def _time(api: str, query: Query) -> float:
    began = time.perf_counter()
    answer = requests.get(f"{api}/notifications", params=query, timeout=10)
    taken = time.perf_counter() - began
    if not answer.ok:
        sys.exit(f"answered {answer.status_code}")
    return taken * 1000


if __name__ == "__main__":
    main()
