"""The development database: its data stays, and no earlier end keeps it from starting."""

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

from notify_queue.local.binaries import find_server
from notify_queue.local.cluster import Cluster
from notify_queue.local.errors import LocalError
from notify_queue.local.home import Home, find_home
from tests.support.folders import folder_for_everybody
from tests.support.waiting import until


@pytest.fixture(scope="module")
def place() -> Iterator[Home]:
    with folder_for_everybody() as project:
        yield find_home(project, find_server())


@pytest.fixture
def cluster(place: Home) -> Iterator[Cluster]:
    cluster = Cluster(place)
    yield cluster
    cluster.stop()


def _run(url: str, statement: str) -> list[tuple[object, ...]]:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _processes_in(folder: Path) -> list[Path]:
    """What works in ``folder``; a process that is over or just ending works nowhere."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink() == folder:
                found.append(link)
    return found


def _pid_file(place: Home) -> Path:
    return place.folder / "postgres" / "data" / "postmaster.pid"


def test_data_is_kept_from_run_to_run(cluster: Cluster) -> None:
    _run(cluster.start().url, "CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS one")
    cluster.stop()
    assert _run(cluster.start().url, "SELECT one FROM kept") == [(1,)]


def test_only_this_machine_and_only_the_password_gets_in(cluster: Cluster, place: Home) -> None:
    url = cluster.start().url
    shown = "SELECT current_setting('listen_addresses'), current_setting('unix_socket_directories')"
    assert _run(url, shown) == [("127.0.0.1", "")]
    password = urlsplit(url).password or ""
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(url.replace(password, "guessed"))
    stored = place.folder / "postgres" / "password"
    assert stored.read_text() == password
    assert stored.stat().st_mode & 0o777 == 0o600


def test_text_is_utf8_in_code_point_order(cluster: Cluster) -> None:
    shown = "SELECT current_setting('server_encoding'), datcollate FROM pg_database"
    assert set(_run(cluster.start().url, shown)) == {("UTF8", "C")}


def test_a_server_that_was_left_running_is_used_again(cluster: Cluster, place: Home) -> None:
    url = cluster.start().url
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        assert Cluster(place).start().url == url
        # The session is still good: nothing was restarted under it.
        cursor.execute("SELECT 1")


def test_a_killed_server_starts_again(cluster: Cluster, place: Home) -> None:
    cluster.start()
    os.kill(int(_pid_file(place).read_text().split()[0]), signal.SIGKILL)
    # Its processes hold the memory of the old server until they have seen it die.
    data = place.folder / "postgres" / "data"
    until(lambda: not _processes_in(data), "the last process of the killed server to end")
    assert _run(cluster.start().url, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("first_line", [str(os.getpid()), "2147483646", ""])
def test_a_stale_pid_file_does_not_block(cluster: Cluster, place: Home, first_line: str) -> None:
    url = cluster.start().url
    lines = _pid_file(place).read_text().splitlines()
    cluster.stop()
    data = str(place.folder / "postgres" / "data")
    _pid_file(place).write_text("\n".join([first_line, data, *lines[2:]]) + "\n")
    place.account.own(_pid_file(place))
    assert urlsplit(cluster.start().url).password == urlsplit(url).password
    assert _run(cluster.start().url, "SELECT 1") == [(1,)]


def test_an_attempt_that_was_cut_short_is_done_again() -> None:
    with folder_for_everybody() as project:
        home = find_home(project, find_server())
        remains = home.folder / "postgres.new"
        (remains / "data").mkdir(parents=True)
        (remains / "data" / "PG_VERSION").write_text("18\n")
        cluster = Cluster(home)
        try:
            assert _run(cluster.start().url, "SELECT 1") == [(1,)]
        finally:
            cluster.stop()


def test_a_server_that_cannot_start_shows_the_end_of_its_log(cluster: Cluster, place: Home) -> None:
    cluster.start()
    cluster.stop()
    settings = place.folder / "postgres" / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(f"{good}\nno_such_setting = 1\n")
    try:
        with pytest.raises(LocalError, match=r"did not start(?s:.*)no_such_setting"):
            cluster.start()
    finally:
        settings.write_text(good)


def test_data_of_another_version_is_refused_in_words(cluster: Cluster, place: Home) -> None:
    cluster.start()
    cluster.stop()
    version = place.folder / "postgres" / "data" / "PG_VERSION"
    good = version.read_text()
    version.write_text("14\n")
    try:
        with pytest.raises(LocalError, match=r"made by PostgreSQL 14, and .* is PostgreSQL 18"):
            cluster.start()
    finally:
        version.write_text(good)
