"""PostgreSQL for the suite: servers of our own, and databases on any server.

A test server belongs to the thread that starts it and ends with it, even when the suite is
killed. It also runs when we are root, as a user without rights.
"""

import os
import secrets
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg2
from psycopg2 import sql
from testing.postgresql import Postgresql

from notify_queue.local.account import server_account
from notify_queue.local.binaries import find_server, major_version
from notify_queue.local.binaries import installed_servers as found_servers
from notify_queue.local.home import reachable_programs
from notify_queue.local.ports import LOOPBACK
from notify_queue.local.tether import tethered
from tests.support.ports import free_port

PROJECT = Path(__file__).resolve().parents[2]
OLDEST_SUPPORTED = 15

_ALWAYS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
}
# A crash may lose everything: the data lives as long as the suite.
_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class TestServer(Postgresql):  # type: ignore[misc] # the library has no types
    """One server on a free port, its files in a temporary folder.

    ``terminate()`` and ``start()`` stop and start it on the same port with the same data;
    ``stop()`` ends it and removes its files.
    """

    __test__ = False

    subdirectories = ()

    def __init__(self, bin_dir: Path, *, durable: bool) -> None:
        """Make and start a server with the programs in ``bin_dir``."""
        self._options = _ALWAYS if durable else _ALWAYS | _FAST
        self._account = server_account()
        self._bin = reachable_programs(PROJECT, bin_dir, self._account)
        self.version = major_version(bin_dir)
        super().__init__(port=free_port(), initdb=str(bin_dir / "initdb"), postgres=str(bin_dir))

    @property
    def postmaster_pid(self) -> int:
        """The process id of the server, for tests that freeze or kill it."""
        return int(self.server_pid)

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        port = self.settings["port"]
        return f"postgresql+psycopg2://postgres@{LOOPBACK}:{port}/{database}"

    def initialize_database(self) -> None:
        """Make the data folder as the user who will run the server."""
        self._account.own(Path(self.base_dir))
        made = self._account.run(
            [
                self._bin / "initdb",
                f"--pgdata={self.get_data_directory()}",
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")

    def get_server_commandline(self) -> list[str]:
        """The server's command, tied to us and run by its user."""
        command = [str(self._bin / "postgres"), "-D", self.get_data_directory()]
        command += ["-p", str(self.settings["port"])]
        for name, value in self._options.items():
            command += ["-c", f"{name}={value}"]
        uid = -1 if self._account.uid is None else self._account.uid
        gid = -1 if self._account.gid is None else self._account.gid
        return tethered(command, signal.SIGQUIT, uid, gid)

    def is_server_available(self) -> bool:
        """Whether it accepts sessions."""
        try:
            psycopg2.connect(_libpq(self.url("postgres"))).close()
        except psycopg2.OperationalError:
            return False
        return True

    def poststart(self) -> None:
        """Nothing: the suite makes its own databases."""


class Databases:
    """Makes and drops databases for tests, on a test server or on a real one.

    On a real server the database of ``admin_url`` is only the place from which others are made;
    nothing in it is read or changed. Every name ends in ``_test``.
    """

    def __init__(self, admin_url: str) -> None:
        """Check that the role may make databases.

        Raises:
            RuntimeError: when it may not.
        """
        self._admin_url = admin_url
        self._prefix = f"notify_queue_{secrets.token_hex(4)}"
        self._template: str | None = None
        self._made = 0
        allowed = self._admin("SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = user")
        if not allowed:
            raise RuntimeError(
                "The role in DATABASE_URL may not create databases, which the tests need: "
                "ALTER ROLE ... CREATEDB, or unset DATABASE_URL to test on a server of our own."
            )

    def make_template(self, migrate: Callable[[str], object]) -> None:
        """Make the database that :meth:`clone` copies: an empty one after ``migrate(url)``."""
        url = self.empty()
        migrate(url)
        self._template = _database(url)
        name = sql.Identifier(self._template)
        # A database somebody is connected to cannot be copied.
        self._admin(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
        self._admin(
            sql.SQL(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
            ).format(sql.Literal(self._template))
        )

    def empty(self) -> str:
        """Make an empty database and return its URL."""
        return self._create(sql.SQL(""))

    def clone(self) -> str:
        """Make a copy of the template and return its URL."""
        if self._template is None:
            raise RuntimeError("make_template comes first")
        return self._create(sql.SQL(" TEMPLATE {}").format(sql.Identifier(self._template)))

    def drop(self, url: str) -> None:
        """Drop a database that was made here, ending whatever sessions it has."""
        self._drop(_database(url))

    def close(self) -> None:
        """Drop the template."""
        if self._template is not None:
            self._drop(self._template)
            self._template = None

    def _create(self, source: sql.Composable) -> str:
        self._made += 1
        name = f"{self._prefix}_{self._made}_test"
        self._admin(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)) + source)
        return urlunsplit(urlsplit(self._admin_url)._replace(path=f"/{name}"))

    def _drop(self, name: str) -> None:
        if not (name.startswith(self._prefix) and name.endswith("_test")):
            raise RuntimeError(f"{name} was not made here, so it is not dropped")
        self._admin(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _admin(self, statement: str | sql.Composable) -> bool:
        """Run one statement from the admin database; returns its first value, if it has one."""
        with closing(psycopg2.connect(_libpq(self._admin_url))) as connection:
            # A database cannot be made within a transaction.
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                row = cursor.fetchone() if cursor.description else None
        return row is not None and bool(row[0])


def start_server(bin_dir: Path | None = None, *, durable: bool = False) -> TestServer:
    """Start a server: of ``bin_dir``, else of TEST_POSTGRES_BIN, else the one found first.

    A durable one keeps what it has committed, as an installed server would.
    """
    chosen = os.environ.get("TEST_POSTGRES_BIN")
    return TestServer(bin_dir or (Path(chosen) if chosen else find_server()), durable=durable)


def installed_servers() -> list[Path]:
    """One folder of programs for each supported version on this machine."""
    by_version: dict[int, Path] = {}
    for folder in found_servers():
        by_version.setdefault(major_version(folder), folder)
    return [folder for version, folder in by_version.items() if version >= OLDEST_SUPPORTED]


def _database(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def sqlalchemy_url(url: str) -> str:
    """The URL as SQLAlchemy reads it, with the name of our driver."""
    return "postgresql+psycopg2://" + url.split("://", 1)[1]


def _libpq(url: str) -> str:
    """The URL as libpq reads it: without SQLAlchemy's name of the driver."""
    scheme, rest = url.split("://", 1)
    return f"{scheme.split('+')[0]}://{rest}"
