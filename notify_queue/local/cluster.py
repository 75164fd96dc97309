"""A PostgreSQL server of this project's own, for development."""

import contextlib
import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from notify_queue.local.binaries import major_version
from notify_queue.local.errors import LocalError
from notify_queue.local.home import Home
from notify_queue.local.ports import LOOPBACK, free_ports
from notify_queue.local.processes import command_line

# The database and its owner bear the product's name.
_NAME = "notify_queue"
# Beside the usual 5432 and its neighbours, where a developer's other servers live.
_PORTS = range(5440, 5540)
_START_SECONDS = 60
_STOP_SECONDS = 30
_LOG_LINES = 15

# Lines of postmaster.pid, counted from 0.
_PID_LINE, _PORT_LINE, _STATE_LINE = 0, 3, 7


@dataclass(frozen=True, slots=True)
class Database:
    """Where a database is: its URL, and what of it may be shown."""

    url: str
    shown: str


class Cluster:
    """One server whose data is kept from run to run.

    It listens on the loopback address only, has no Unix socket (their paths may not be long),
    and asks for a random password that stands in a file only its user can read.
    """

    def __init__(self, home: Home) -> None:
        """Nothing is touched until :meth:`start`."""
        self._account = home.account
        self._bin = home.bin_dir
        self._folder = home.folder / "postgres"
        self._data = self._folder / "data"
        self._pid_path = self._data / "postmaster.pid"

    @property
    def log(self) -> Path:
        """What the server itself writes."""
        return self._folder / "server.log"

    def start(self) -> Database:
        """Start the server, or find it running, and return its database.

        Raises:
            LocalError: when it cannot be made or does not start; the text shows its last words.
        """
        if not self._folder.exists():
            self._make()
        self._refuse_other_version()
        port = self._running_port()
        if port is None:
            port = next(free_ports(_PORTS))
            self._launch(port)
        password = (self._folder / "password").read_text()
        address = f"{LOOPBACK}:{port}/{_NAME}"
        return Database(
            url=f"postgresql://{_NAME}:{password}@{address}",
            shown=f"postgresql://{_NAME}@{address}",
        )

    def stop(self) -> None:
        """Stop the server, ending its sessions; nothing happens when it does not run.

        Raises:
            LocalError: when it does not stop in time.
        """
        if not self._is_alive():
            return
        stopped = self._pg_ctl("stop", "-m", "fast", "-t", str(_STOP_SECONDS))
        if stopped:
            raise LocalError(f"The database server did not stop:\n{stopped}")

    def _make(self) -> None:
        """Make everything aside, then move it into place: an attempt cut short leaves nothing."""
        part = self._folder.with_name("postgres.new")
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(mode=0o700)
        password = part / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_hex(24))
        self._account.own(password)
        self._account.own(part)
        data = part / "data"
        self._must_run(
            [
                self._bin / "initdb",
                f"--pgdata={data}",
                f"--username={_NAME}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-instructions",
            ]
        )
        self._must_run(
            [self._bin / "postgres", "--single", "-D", data, "postgres"],
            typed=f"CREATE DATABASE {_NAME}\n",
        )
        part.rename(self._folder)

    def _launch(self, port: int) -> None:
        # Left by a crash, and its number may be another program's by now, or a zombie's: the
        # server would refuse to start. Should one be alive after all, unseen by us, the shared
        # memory it holds still keeps a second one out.
        self._pid_path.unlink(missing_ok=True)
        options = f"-p {port} -c listen_addresses={LOOPBACK} -c unix_socket_directories="
        failed = self._pg_ctl(
            "start", "-t", str(_START_SECONDS), "-l", str(self.log), "-o", options
        )
        if failed:
            raise LocalError(
                f"The database server did not start: {failed}\nIts log ({self.log}) ends with:\n"
                f"{_tail(self.log)}"
            )

    def _pg_ctl(self, action: str, *arguments: str) -> str:
        """Run pg_ctl to its end. Returns what it said when it failed, else nothing."""
        done = self._account.run([self._bin / "pg_ctl", action, "-w", "-D", self._data, *arguments])
        return (done.stderr or done.stdout).strip() or "failed" if done.returncode else ""

    def _running_port(self) -> int | None:
        """The port of a server that an earlier run left alive here, once it is ready."""
        deadline = time.monotonic() + _START_SECONDS
        while self._is_alive():
            lines = self._pid_file()
            if len(lines) > _STATE_LINE and lines[_STATE_LINE].strip() == "ready":
                return int(lines[_PORT_LINE])
            if time.monotonic() > deadline:
                raise LocalError(f"The database server in {self._data} is neither up nor down.")
            time.sleep(0.1)
        return None

    def _is_alive(self) -> bool:
        lines = self._pid_file()
        # A crash can leave the file empty.
        known = bool(lines) and lines[_PID_LINE].isdigit()
        return known and str(self._data) in command_line(int(lines[_PID_LINE]))

    def _pid_file(self) -> list[str]:
        try:
            return self._pid_path.read_text().splitlines()
        except FileNotFoundError:
            return []

    def _refuse_other_version(self) -> None:
        made_by = int((self._data / "PG_VERSION").read_text())
        version = major_version(self._bin)
        if made_by != version:
            raise LocalError(
                f"The data in {self._data} was made by PostgreSQL {made_by}, and {self._bin} is "
                f"PostgreSQL {version}. Use the older programs, or move {self._folder} away."
            )

    def _must_run(self, argv: Sequence[str | Path], typed: str | None = None) -> None:
        done = self._account.run(argv, typed)
        if done.returncode != 0:
            raise LocalError(f"{Path(argv[0]).name} failed:\n{done.stdout}{done.stderr}")


def _tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    return "(no log)"
