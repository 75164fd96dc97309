"""What a process refuses to start with, and how it says so."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.faults import engine_on
from tests.support.jobs import Jobs
from tests.support.postgres import Databases
from tests.support.processes import ROOT, Process, Processes

_END_WITHIN_S = 20
_CONFIG_ERROR = 78
# Each value can be told from anything that a process says of itself.
_BAD = {
    "DATABASE_URL": "postgresql://ada:hunter2@db.example:70001/queue",
    "PORT": "99173",
    "WORKER_CONCURRENCY": "sesame",
    "BASE_RETRY_DELAY_MS": "48611",
    "MAX_RETRY_DELAY_MS": "48610",
}
_PROBLEMS = {
    "DATABASE_URL: must give ports",
    "PORT: must not be greater",
    "WORKER_CONCURRENCY: must be",
    "BASE_RETRY_DELAY_MS: BASE_RETRY_DELAY_MS must not exceed MAX_RETRY_DELAY_MS",
}
_SECRETS = ("hunter2", "70001", "99173", "sesame", "48611", "48610")


def _exit_code(process: Process) -> int:
    return process.popen.wait(_END_WITHIN_S)


def _assert_lists_every_problem(said: str) -> None:
    assert {problem for problem in _PROBLEMS if f"  - {problem}" in said} == _PROBLEMS
    assert said.count("  - ") == len(_PROBLEMS)
    assert not [value for value in _SECRETS if value in said]


def test_every_command_lists_all_bad_settings_and_shows_no_value(processes: Processes) -> None:
    commands = ("api", "worker", "all", "migrate", "check")
    for process in [processes.start(command, **_BAD) for command in commands]:
        assert _exit_code(process) == _CONFIG_ERROR
        _assert_lists_every_problem(process.errors())
        assert process.text() == ""


def test_gunicorn_itself_ends_on_bad_settings_before_it_starts_any_worker() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "gunicorn", "--config", "gunicorn.conf.py", "wsgi:app"],
        cwd=ROOT,
        env={**os.environ, **_BAD},
        capture_output=True,
        text=True,
        timeout=_END_WITHIN_S,
        check=False,
    )
    assert ended.returncode == _CONFIG_ERROR
    _assert_lists_every_problem(ended.stderr)
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("command", ["api", "worker"])
def test_a_database_without_our_schema_is_refused_and_not_touched(
    databases: Databases, tmp_path: Path, command: str
) -> None:
    url = databases.empty()
    with Processes(url, tmp_path) as processes:
        process = processes.start(command)
        assert _exit_code(process) != 0
        assert "run `python -m notify_queue migrate` first" in process.errors()
    with engine_on(url) as engine:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert Jobs(engine).one(tables) == 0
    databases.drop(url)


def test_four_migrations_at_once_make_one_schema(databases: Databases, tmp_path: Path) -> None:
    url = databases.empty()
    with Processes(url, tmp_path) as processes:
        runs = [processes.start("migrate") for _ in range(4)]
        assert [_exit_code(run) for run in runs] == [0] * 4, [run.errors() for run in runs]
        processes.running("worker")
    with engine_on(url) as engine:
        assert Jobs(engine).one("SELECT count(*) FROM alembic_version") == 1
    databases.drop(url)


def test_a_worker_whose_port_is_taken_says_so_and_claims_nothing(
    processes: Processes, jobs: Jobs
) -> None:
    [job_id] = jobs.add()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = processes.start("worker", PORT=port)
        assert _exit_code(worker) == 1
    assert f"Port {port} is taken" in worker.errors()
    assert "Traceback" not in worker.errors()
    assert jobs.row(job_id)["status"] == "PENDING"
    assert jobs.row(job_id)["attempt_count"] == 0


def test_nothing_is_imported_before_a_process_is_patched(processes: Processes) -> None:
    # gevent warns with a RuntimeWarning of its own. Named by its own class it would not count:
    # Python reads this variable before it can import gevent. Unlike an option of the command
    # line, it also reaches the processes that gunicorn starts.
    strict = {"PYTHONWARNINGS": "error::RuntimeWarning"}
    for process in [processes.start(command, **strict) for command in ("api", "worker", "all")]:
        process.wait_until_healthy()
        assert process.stop() == 0
        assert "MonkeyPatchWarning" not in process.errors()
