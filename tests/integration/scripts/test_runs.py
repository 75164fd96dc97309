"""What holds for every script: where it may be started, and how it ends when it cannot run."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.integration.scripts.runs import MARKED, Scripts, ended_badly, to_end
from tests.support.jobs import Jobs
from tests.support.ports import free_port
from tests.support.postgres import Databases
from tests.support.processes import ROOT

NAMES = ["seed", "recover", "redrive"]


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
    assert (ended.code, ended.out) == (1, "")
    (line,) = ended.err.splitlines()
    assert "The run failed (OperationalError)" in line
    assert "hunter2" not in line


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
    assert (ended.code, ended.out) == (1, "")
    assert "The run failed (CheckViolation, SQLSTATE 23514)" in ended.err
    assert MARKED not in ended.err
    assert jobs.statuses() == {"DEAD_LETTERED": 1}


def test_on_a_terminal_a_bar_shows_the_way_and_no_line_tears_it(
    scripts: Scripts, jobs: Jobs
) -> None:
    ended_badly(jobs, 3)
    terminal, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "redrive.py"],
        env=scripts.environment(),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as running:
        os.close(theirs)
        shown = _read_all(terminal)
        assert to_end(running).line == {"redriven": 3, "remaining": 0}
    assert "3/3" in shown
    assert "job.redriven" not in shown
    assert shown.count("jobs.redriven") == 1


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
