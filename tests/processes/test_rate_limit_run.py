"""The limit of a recipient, measured where it counts: in what the provider has noted.

Ten workers run under everything that could make them lose count: waves of jobs that fall due at one
instant for all of them, failures, retries, redrives, cancellations, kills, and claims that hang in
their commit. LIMIT_RUN_S is how long that goes on, in s. The choices are drawn after the seed that
pytest-randomly prints; a failure tells the seed of the run as well.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from notify_queue.domain.job import Priority
from notify_queue.domain.redrive import Selection
from notify_queue.persistence.unit_of_work import unit_of_work_factory
from tests.support.faults import engine_on
from tests.support.held import CLAIM_COMMIT, gates, held
from tests.support.jobs import Jobs
from tests.support.postgres import Databases
from tests.support.processes import Process, Processes
from tests.support.recording import SHORT_LEASE, Call, RecordingProvider
from tests.support.waiting import until
from tests.support.windows import fullest_windows, notifications, told

_RUN_S = float(os.environ.get("LIMIT_RUN_S", "32"))
_WORKERS = 10
_MOST = 3
_WINDOW_S = 2
_RECIPIENTS = [f"user{number}@example.com" for number in range(40)]
# A wave goes to every fourth recipient, and each of them gets the next one four turns later: time
# for most of a wave to go out, and then to fall silent, so that all slots are free at once.
_GROUPS = 4
_TURN_S = 2.0
_WAVE_OF_EACH_PRIORITY = 4
_WAVE_DUE_IN_S = 0.3
_HELD_S = 0.3
_REDRIVEN_AT_ONCE = 20

_SETTINGS: dict[str, str | float] = {
    **SHORT_LEASE,
    "RATE_LIMIT_MAX_NOTIFICATIONS": _MOST,
    "RATE_LIMIT_WINDOW_SECONDS": _WINDOW_S,
    # What is added later than this before its time, all of them know of in time.
    "WORKER_POLL_INTERVAL_MS": 100,
    # Smaller than what a wave brings for one recipient: several workers meet at each.
    "WORKER_BATCH_SIZE": 5,
    "DATABASE_POOL_MAX": 4,
    "MOCK_FAILURE_RATE": 0.3,
    "MOCK_LATENCY_MS": 60,
    "BASE_RETRY_DELAY_MS": 50,
    "MAX_RETRY_DELAY_MS": 400,
}
# Before a lock is tried, others get the time to be done with it. Whoever counts in the statement
# that tries it has a snapshot from before that.
_SLOW_LOCKS = """
    CREATE SCHEMA slow;
    CREATE SEQUENCE slow.tries;
    CREATE FUNCTION slow.pg_try_advisory_xact_lock(kind integer, key integer) RETURNS boolean
    LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('slow.tries'), pg_sleep(0.001);
        RETURN pg_catalog.pg_try_advisory_xact_lock(kind, key);
    END $$;
    ALTER DATABASE "{name}" SET search_path = slow, pg_catalog, public;
    ALTER DATABASE "{name}" SET default_transaction_isolation = '{isolation}'
"""
_WAITING = """
    SELECT coalesce(array_agg(id), '{}') FROM job_overview WHERE recipient = ANY (:recipients)
        AND status = 'PENDING' AND attempt_count = 0 AND redrive_count = 0
"""
_BUSY = "SELECT min(locked_by) FROM job_queue WHERE locked_by = ANY (:living)"
_SENT_BUT_NOT_ACCEPTED = """
    SELECT count(*) FROM notification_jobs LEFT JOIN mock_provider_deliveries
        ON delivery_key = id::text WHERE outcome = 'SENT' AND delivery_key IS NULL
"""


class _Database(NamedTuple):
    """A database of this test alone."""

    url: str
    engine: Engine


@pytest.fixture(params=["read committed", "repeatable read"])
def database(request: pytest.FixtureRequest, databases: Databases) -> Iterator[_Database]:
    url = databases.clone()
    with engine_on(url) as engine, engine.begin() as connection:
        name = urlsplit(url).path.removeprefix("/")
        connection.exec_driver_sql(_SLOW_LOCKS.format(name=name, isolation=request.param))
    with engine_on(url) as engine:
        yield _Database(url, engine)
    databases.drop(url)


class _Run:
    """Everything that happens to the workers, a turn at a time."""

    def __init__(self, database: _Database, provider: RecordingProvider, seed: int) -> None:
        """Start the workers and wait until all of them look at the queue."""
        self._random = random.Random(seed)
        self._engine = database.engine
        self._jobs = Jobs(database.engine)
        self._unit_of_work = unit_of_work_factory(database.engine)
        self._provider = provider
        self._numbers = count(1)
        self._running: dict[str, Process] = {}
        for _ in range(_WORKERS):
            self._start()
        for worker in self._running.values():
            worker.wait_until_healthy()
        self.added = self.killed = self.redriven = self.cancelled = 0

    def go_on(self, run_s: float) -> None:
        """Take turns, each of ``_TURN_S``."""
        began = time.monotonic()
        turn = 0
        while time.monotonic() < began + run_s:
            self._silence(_RECIPIENTS[(turn + 1) % _GROUPS :: _GROUPS])
            self._redrive_some()
            due = time.monotonic() + _WAVE_DUE_IN_S
            self._wave(_RECIPIENTS[turn % _GROUPS :: _GROUPS], due)
            # At every second wave all claims hang in their commit, with whatever they have locked.
            with held(self._engine, CLAIM_COMMIT) if turn % 2 else nullcontext():
                _pass(due + self._random.uniform(0, _HELD_S / 2))
                self._kill(self._anyone() if turn % 2 else self._somebody_busy())
                _pass(due + _HELD_S)
            turn += 1
            _pass(began + turn * _TURN_S)

    def stop(self) -> None:
        """End the workers in peace, all at once, the last one when it has come up."""
        workers = self._running.values()
        for worker in workers:
            worker.wait_until_healthy()
        for worker in workers:
            worker.popen.send_signal(signal.SIGTERM)
        assert [worker.popen.wait(40) for worker in workers] == [0] * _WORKERS

    def _start(self) -> None:
        name = f"worker-{next(self._numbers)}"
        self._running[name] = self._provider.start(
            **_SETTINGS, WORKER_ID=name, PYTHONHASHSEED=self._random.randrange(2**32)
        )

    def _anyone(self) -> str:
        return self._random.choice(list(self._running))

    def _somebody_busy(self) -> str:
        """Name a worker that has claims."""
        living = list(self._running)
        name: str = until(lambda: self._jobs.one(_BUSY, living=living), "somebody to be busy")
        return name

    def _kill(self, name: str) -> None:
        """Another worker takes its place, with other hashes."""
        assert self._running.pop(name).stop(signal.SIGKILL) == -signal.SIGKILL
        self.killed += 1
        self._start()

    def _wave(self, recipients: list[str], due: float) -> None:
        """Add more jobs than there are slots. Those of one recipient stand side by side."""
        for recipient in recipients:
            for priority in Priority:
                self._jobs.add(
                    _WAVE_OF_EACH_PRIORITY,
                    recipient=recipient,
                    priority=priority,
                    due_in_s=due - time.monotonic(),
                    max_attempts=self._random.choice([1, 2, 3]),
                )
                self.added += _WAVE_OF_EACH_PRIORITY

    def _silence(self, recipients: list[str]) -> None:
        """Cancel what two in three of them still wait for; the others go on with a backlog.

        Only what has never been tried: it cannot have been accepted.
        """
        chosen = self._random.sample(recipients, len(recipients) * 2 // 3)
        for job_id in self._jobs.one(_WAITING, recipients=chosen):
            # Whoever keeps the row locked for so long has broken more, which is judged by the log.
            with suppress(OperationalError), self._unit_of_work() as unit:
                self.cancelled += unit.operations.cancel(job_id) is not None
                unit.commit()

    def _redrive_some(self) -> None:
        with self._unit_of_work() as unit:
            dead = unit.operations.lock_redrivable(Selection(), _REDRIVEN_AT_ONCE)
            self.redriven += len(unit.operations.redrive(dead, max_attempts=2))
            unit.commit()


def _pass(moment: float) -> None:
    """Let the time pass until ``time.monotonic()`` reads ``moment``."""
    until(lambda: time.monotonic() >= moment, "the time to pass")


@contextmanager
def _processes(database: _Database, folder: Path) -> Iterator[Processes]:
    with gates(database.engine), Processes(database.url, folder) as processes:
        yield processes


def _ledger(engine: Engine) -> dict[str, Any]:
    """Every job by its delivery key, as the overview shows it."""
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT * FROM job_overview"))
        return {str(row.id): row for row in rows}


def _recorded(engine: Engine) -> list[Call]:
    """What the provider has accepted by its own record, also if nobody lived to note it."""
    with engine.begin() as connection:
        rows = connection.execute(
            text(
                "SELECT extract(epoch FROM delivered_at) AS time, delivery_key"
                " FROM mock_provider_deliveries"
            )
        )
        return [Call(float(row.time), row.delivery_key, "recorded", 0) for row in rows]


@pytest.mark.timeout(_RUN_S + 80)
def test_no_window_holds_more_notifications_than_the_limit(
    database: _Database, tmp_path: Path
) -> None:
    seed = random.getrandbits(32)
    with _processes(database, tmp_path) as processes:
        provider = RecordingProvider(processes, tmp_path / "calls.log")
        run = _Run(database, provider, seed)
        run.go_on(_RUN_S)
        run.stop()
    ledger = _ledger(database.engine)
    _assert_the_limit_held_and_bound(provider, _recorded(database.engine), ledger, seed)
    _assert_it_was_an_eventful_run(database, run, list(processes), ledger)
    _assert_nothing_was_lost(database, provider, run, ledger)


def _assert_the_limit_held_and_bound(
    provider: RecordingProvider, recorded: list[Call], ledger: dict[str, Any], seed: int
) -> None:
    recipients = {key: row.recipient for key, row in ledger.items()}
    for calls in (provider.calls("begun"), provider.calls("accepted"), recorded):
        fullest = fullest_windows(calls, recipients, _WINDOW_S)
        over = [who for who, window in fullest.items() if notifications(window) > _MOST]
        assert not over, f"seed {seed}: the limit of {_MOST} was broken for {len(over)}\n" + (
            "\n".join(told(who, fullest[who]) for who in over[:5])
        )
        at_the_limit = [who for who, window in fullest.items() if notifications(window) == _MOST]
        assert len(at_the_limit) > len(_RECIPIENTS) * 3 / 4
    allowed = len(_RECIPIENTS) * _MOST * _RUN_S / _WINDOW_S
    assert len(provider.calls("accepted")) > allowed / 4


def _assert_it_was_an_eventful_run(
    database: _Database, run: _Run, workers: list[Process], ledger: dict[str, Any]
) -> None:
    seen = Counter(line["msg"] for worker in workers for line in worker.lines())
    assert seen["job.retry"] > 100
    assert seen["job.dead_letter"] > 20
    # Claims that had lost their worker.
    assert seen["job.recovered"] > run.killed / 8
    # Nobody has waited for anybody until a deadline struck, and nobody was chosen as a victim.
    assert not [event for event in seen if event.endswith("_failed")]
    assert Jobs(database.engine).one("SELECT last_value FROM slow.tries") > len(_RECIPIENTS)
    assert run.redriven > 20
    assert any(row.redrive_count and row.status == "SENT" for row in ledger.values())
    assert run.cancelled > 20


def _assert_nothing_was_lost(
    database: _Database, provider: RecordingProvider, run: _Run, ledger: dict[str, Any]
) -> None:
    jobs = Jobs(database.engine)
    assert len(ledger) == run.added
    live = {"PENDING", "PROCESSING"}
    statuses = {row.status for row in ledger.values()}
    assert statuses <= live | {"SENT", "DEAD_LETTERED", "CANCELLED"}
    assert jobs.statuses().get("CANCELLED") == run.cancelled
    assert jobs.one(_SENT_BUT_NOT_ACCEPTED) == 0
    accepted = Counter(call.key for call in provider.calls("accepted"))
    assert set(accepted.values()) == {1}
    # Dead is only what lost its worker again and again; the provider refuses nothing it has taken.
    for row in (ledger[key] for key in accepted):
        assert row.status in live | {"SENT"} or "Claim expired" in row.last_error, row
