"""Runs the scripts the way an operator does, as processes, and puts jobs before them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from notify_queue.settings.values import declarations
from tests.support.jobs import Jobs
from tests.support.processes import ROOT

MARKED = "marked-recipient@example.com"


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> dict[str, Any]:
        """The one line of standard output."""
        (only,) = self.out.splitlines()
        line: dict[str, Any] = json.loads(only)
        return line

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log records of one event."""
        records = [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]
        return [record for record in records if record["msg"] == event]


class Scripts:
    """Runs scripts on one database, from a folder that is not the project's."""

    def __init__(self, database_url: str, elsewhere: Path) -> None:
        self._url = database_url
        self._elsewhere = elsewhere

    def start(self, name: str, *options: str, **settings: str) -> subprocess.Popen[str]:
        """Start ``python scripts/<name>.py`` and do not wait."""
        return self._popen(
            [str(ROOT / "scripts" / f"{name}.py")], self._elsewhere, options, settings
        )

    def run(self, name: str, *options: str, **settings: str) -> Ended:
        """Run it to its end."""
        return to_end(self.start(name, *options, **settings))

    def run_as_module(self, name: str, *options: str) -> Ended:
        """Run ``python -m scripts.<name>`` in the project to its end."""
        return to_end(self._popen(["-m", f"scripts.{name}"], ROOT, options, {}))

    def environment(self, **settings: str) -> dict[str, str]:
        """What a script sees: nothing of this machine's settings."""
        return {
            **os.environ,
            # Empty counts as unset and wins over a developer's .env.
            **dict.fromkeys(declarations(), ""),
            "DATABASE_URL": self._url,
            "NODE_ENV": "test",
            **settings,
        }

    def _popen(
        self, target: list[str], cwd: Path, options: tuple[str, ...], settings: dict[str, str]
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # A script that patches too late must not start.
            [sys.executable, "-W", "error:Monkey-patching", *target, *options],
            cwd=cwd,
            env=self.environment(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def to_end(running: subprocess.Popen[str], number: signal.Signals | None = None) -> Ended:
    """Signal it if asked to, and wait for its end."""
    try:
        if number is not None:
            running.send_signal(number)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
    # None when standard error is a terminal.
    err = err or ""
    assert "Traceback" not in err
    return Ended(running.returncode, out, err)


def ended_badly(jobs: Jobs, count: int, status: str = "DEAD_LETTERED", **how: Any) -> list[UUID]:
    """Add jobs that have ended as ``status`` after six attempts, one minute ago.

    Each was created a second after the one before.
    """
    added = jobs.add(count, **{"recipient": MARKED, **how})
    jobs.run("DELETE FROM job_queue WHERE job_id = ANY(:ids)", ids=added)
    jobs.run(
        """
        UPDATE notification_jobs j
           SET outcome = :status, attempt_count = 6, last_error = 'Simulated provider outage',
               created_at = now() - interval '1 day' + n * interval '1 s',
               ended_at = now() - interval '1 min'
          FROM unnest(CAST(:ids AS uuid[])) WITH ORDINALITY AS listed (id, n)
         WHERE j.id = listed.id
        """,
        ids=added,
        status=status,
    )
    return added


def claimed_long_ago(jobs: Jobs, count: int, **columns: Any) -> list[UUID]:
    """Add jobs that a worker claimed an hour ago, for their first attempt unless told otherwise."""
    added = jobs.add(count, recipient=MARKED)
    jobs.run(
        """
        UPDATE job_queue
           SET claim_token = gen_random_uuid(), locked_by = 'gone', attempt_count = :attempts,
               reconciliation_granted = :granted, locked_at = now() - interval '1 hour'
         WHERE job_id = ANY(:ids)
        """,
        ids=added,
        **{"attempts": 1, "granted": False, **columns},
    )
    return added
