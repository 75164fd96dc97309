"""What the benchmarks share: a durable server, a migrated database, processes, and a summary."""

import argparse
import json
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from sqlalchemy import Engine

from notify_queue.persistence.engine import direct_engine, pooled_engine
from notify_queue.persistence.schema import upgrade
from tests.support.jobs import Jobs
from tests.support.postgres import Databases, sqlalchemy_url, start_server
from tests.support.processes import Processes

MIN_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Bench:
    """A fresh database on a durable server, and the processes to run on it."""

    engine: Engine
    jobs: Jobs
    processes: Processes


@contextmanager
def bench() -> Iterator[Bench]:
    """Set everything up and take it all down again."""
    server = start_server(durable=True)
    try:
        url = Databases(server.url("postgres")).empty()
        migrating = direct_engine(sqlalchemy_url(url), "notify-queue bench")
        upgrade(migrating)
        engine = pooled_engine(sqlalchemy_url(url), "notify-queue bench", 4)
        with tempfile.TemporaryDirectory() as folder, Processes(url, Path(folder)) as processes:
            yield Bench(engine, Jobs(engine), processes)
        engine.dispose()
    finally:
        server.stop()


def rounds() -> int:
    """How many rounds the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=MIN_ROUNDS)
    return max(MIN_ROUNDS, int(parser.parse_args().rounds))


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and extremes, rounded to what can be meant by them."""
    return {
        "median": round(median(values), 1),
        "p95": round(quantiles(values, n=20, method="inclusive")[-1], 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
        "n": len(values),
    }


def report(name: str, figures: dict[str, object]) -> None:
    """Print the figures of one benchmark."""
    print(json.dumps({"benchmark": name, "python": platform.python_version(), **figures}, indent=2))
