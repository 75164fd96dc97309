"""What holds for every script: where it may be started, and how it ends when it cannot run."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.integration.scripts.runs import (
    MARKED,
    Ended,
    Scripts,
    claimed_long_ago,
    ended_badly,
    to_end,
)
from tests.support.jobs import Jobs
from tests.support.ports import free_port
from tests.support.postgres import Databases
from tests.support.processes import ROOT

NAMES = ["seed", "recover", "redrive"]
# What the line says of a run that has done nothing.
NOTHING: dict[str, dict[str, Any]] = {
    "seed": {"seeded": 0},
    "recover": {"requeued": 0, "deadLettered": 0},
    "redrive": {"redriven": 0},
}


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_a_module_too(scripts: Scripts, jobs: Jobs, name: str) -> None:
    assert scripts.run_as_module(name, "--dry-run").line == scripts.run(name, "--dry-run").line


@pytest.mark.parametrize("name", NAMES)
def test_it_explains_itself(scripts: Scripts, name: str) -> None:
    told = scripts.run(name, "--help", DATABASE_URL="")
    assert told.code == 0
    assert "--dry-run" in told.out


@pytest.mark.parametrize("name", NAMES)
def test_an_absent_database_is_one_plain_line(scripts: Scripts, name: str) -> None:
    url = f"postgresql://ada:hunter2@127.0.0.1:{free_port()}/queue"
    ended = scripts.run(name, DATABASE_URL=url)
    assert ended.code == 1
    assert ended.line == {**NOTHING[name], "failed": True}
    asked = "Does DATABASE_URL lead to the database?"
    assert ended.err == f"The run failed (OperationalError). {asked}\n"


@pytest.mark.parametrize("name", NAMES)
def test_bad_settings_are_listed(scripts: Scripts, name: str) -> None:
    ended = scripts.run(name, DATABASE_URL="", PORT="sesame")
    assert (ended.code, ended.out) == (78, "")
    assert "DATABASE_URL: is required" in ended.err
    assert "PORT: must be" in ended.err
    assert "sesame" not in ended.err


@pytest.mark.parametrize("name", NAMES)
def test_an_old_schema_is_refused(databases: Databases, tmp_path: Path, name: str) -> None:
    ended = Scripts(databases.empty(), tmp_path).run(name)
    assert (ended.code, ended.out) == (78, "")
    assert "run `python -m notify_queue migrate` first" in ended.err


def test_what_the_database_refuses_is_told_by_its_code(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 1)
    jobs.run("ALTER TABLE job_queue ADD CONSTRAINT never CHECK (recipient = '') NOT VALID")
    try:
        ended = scripts.run("redrive")
    finally:
        jobs.run("ALTER TABLE job_queue DROP CONSTRAINT never")
    assert ended.code == 1
    assert ended.line == {"redriven": 0, "failed": True}
    assert "The run failed (CheckViolation, SQLSTATE 23514)" in ended.err
    assert "stays done" not in ended.err
    assert MARKED not in ended.err
    assert jobs.statuses() == {"DEAD_LETTERED": 1}


def test_on_a_terminal_every_line_stands_whole_above_the_bar(scripts: Scripts, jobs: Jobs) -> None:
    ended_badly(jobs, 3)
    ended, shown = _at_a_terminal(scripts, "redrive", "--rate", "2")
    assert ended.line == {"redriven": 3, "remaining": 0}
    assert [line["msg"] for line in _lines(shown)] == ["job.redriven"] * 3 + ["jobs.redriven"]
    assert "3/3" in shown


def test_so_does_every_line_of_a_recovery(scripts: Scripts, jobs: Jobs) -> None:
    claimed_long_ago(jobs, 2)
    claimed_long_ago(jobs, 1, attempts=6, granted=True)
    ended, shown = _at_a_terminal(scripts, "recover")
    assert ended.line == {"requeued": 2, "deadLettered": 1, "remaining": 0}
    said = sorted(line["msg"] for line in _lines(shown))
    assert said == ["job.dead_letter", "job.recovered", "job.recovered", "jobs.recovered"]
    assert "3/3" in shown


def _at_a_terminal(scripts: Scripts, name: str, *options: str) -> tuple[Ended, str]:
    """Run a script with a terminal for its standard error, and return what came there too."""
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with subprocess.Popen(
        [sys.executable, ROOT / "scripts" / f"{name}.py", *options],
        env=scripts.environment(),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as running:
        os.close(theirs)
        shown = _read_all(terminal)
        return to_end(running), shown


def _lines(shown: str) -> list[dict[str, Any]]:
    """The log lines among what a terminal got; each may begin where a bar was wiped out."""
    last_written = [line.rstrip("\r").rpartition("\r")[2] for line in shown.split("\n")]
    return [json.loads(line) for line in last_written if line.startswith("{")]


def _read_all(terminal: int) -> str:
    read = b""
    # Linux says EIO, and not the end of the file, once nobody holds the other end.
    while chunk := _read(terminal):
        read += chunk
    os.close(terminal)
    return read.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
