"""The databases the suite runs on: made quickly, kept apart, and gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from notify_queue.local.processes import command_line
from tests.support.postgres import Databases, TestServer, installed_servers, start_server
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=installed_servers(), ids=lambda folder: folder.parent.name)
def server(request: pytest.FixtureRequest) -> Iterator[TestServer]:
    server = start_server(request.param)
    yield server
    server.stop()


@pytest.fixture
def databases(server: TestServer) -> Iterator[Databases]:
    databases = Databases(server.url("postgres"))
    databases.make_template(lambda url: _run(url, "CREATE TABLE made_once (id integer)"))
    yield databases
    databases.close()


def _run(url: str, statement: str) -> list[tuple[object, ...]]:
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


def test_a_server_runs_the_version_it_says(server: TestServer) -> None:
    ((number,),) = _run(server.url("postgres"), "SHOW server_version_num")
    assert int(str(number)) // 10_000 == server.version
    assert "/postgres -D " in command_line(server.postmaster_pid)


def test_a_server_stops_and_starts_with_its_data(server: TestServer) -> None:
    _run(server.url("postgres"), "CREATE TABLE kept (id integer)")
    server.terminate()
    with pytest.raises(psycopg2.OperationalError):
        _run(server.url("postgres"), "SELECT 1")
    server.start()
    assert _run(server.url("postgres"), "TABLE kept") == []
    _run(server.url("postgres"), "DROP TABLE kept")


def test_clones_hold_the_template_and_nothing_of_each_other(databases: Databases) -> None:
    first, second = databases.clone(), databases.clone()
    _run(first, "INSERT INTO made_once VALUES (1)")
    assert _run(first, "TABLE made_once") == [(1,)]
    assert _run(second, "TABLE made_once") == []
    assert first.endswith("_test")
    for url in (first, second):
        databases.drop(url)


def test_a_database_in_use_is_dropped_all_the_same(databases: Databases) -> None:
    url = databases.empty()
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))):
        databases.drop(url)
    with pytest.raises(psycopg2.OperationalError, match="does not exist"):
        _run(url, "SELECT 1")


def test_a_database_from_elsewhere_is_never_dropped(
    databases: Databases, server: TestServer
) -> None:
    with pytest.raises(RuntimeError, match="was not made here"):
        databases.drop(server.url("postgres"))


def test_nothing_stays_behind(server: TestServer) -> None:
    names = "SELECT datname FROM pg_database WHERE datname LIKE '%\\_test' ORDER BY datname"
    before = _run(server.url("postgres"), names)
    databases = Databases(server.url("postgres"))
    databases.make_template(lambda url: _run(url, "SELECT 1"))
    databases.drop(databases.clone())
    databases.close()
    assert _run(server.url("postgres"), names) == before


def test_a_role_that_may_not_make_databases_is_told_so(server: TestServer) -> None:
    _run(server.url("postgres"), "CREATE ROLE modest LOGIN")
    try:
        with pytest.raises(RuntimeError, match="may not create databases"):
            Databases(server.url("postgres").replace("postgres@", "modest@"))
    finally:
        _run(server.url("postgres"), "DROP ROLE modest")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties children to us")
def test_a_server_ends_with_a_suite_that_is_killed() -> None:
    program = (
        "import time\nfrom tests.support.postgres import start_server\n"
        "server = start_server()\n"
        "print(server.postmaster_pid, server.base_dir, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as suite:
        assert suite.stdout is not None
        number, folder = suite.stdout.readline().split()
        pid = int(number)
        assert command_line(pid)
        suite.send_signal(signal.SIGKILL)
    until(lambda: not command_line(pid), "the server to end with its parent")
    shutil.rmtree(folder)
