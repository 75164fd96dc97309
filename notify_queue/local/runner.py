"""The order of things: database, schema, examples, API, workers; then wait, then stop it all."""

import http.client
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from notify_queue.local.binaries import find_server
from notify_queue.local.children import Children, stop_leftovers
from notify_queue.local.cluster import Cluster, Database
from notify_queue.local.console import say
from notify_queue.local.errors import LocalError
from notify_queue.local.examples import describe_seeding
from notify_queue.local.home import find_home
from notify_queue.local.ports import HIGHEST, LOOPBACK, free_ports, is_free
from notify_queue.local.run_lock import RunLock
from notify_queue.local.settings import asked_port, child_environment, read_given

_USUAL_PORT = 3000
_READY_SECONDS = 30
_PING_SECONDS = 2
_POLL_SECONDS = 0.1

_API = "the API"
_SEED = "scripts/seed.py"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said: how many workers, and the API's port if one was named."""

    workers: int
    port: int | None


class StopAsked(Exception):  # noqa: N818 - a request, not an error
    """Somebody wants the runner to end."""


class Runner:
    """Runs the product on this machine until it is asked to stop or a part of it ends."""

    def __init__(self, project: Path, options: Options) -> None:
        """Nothing is started until :meth:`run`."""
        self._project = project
        self._options = options
        self._given = read_given(project)
        self._children = Children(project)
        self._cluster: Cluster | None = None
        self._signals = 0

    def run(self) -> int:
        """Run until the end; the exit status is 0 when the end was asked for, else 1.

        Raises:
            LocalError: when another runner is at work in this project.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        local = self._project / ".local"
        local.mkdir(exist_ok=True)
        with RunLock(local / "dev.lock") as lock:
            try:
                self._start(lock)
                self._watch()
            except StopAsked:
                return 0
            except (LocalError, OSError) as error:
                # Said before the rest is stopped, which can take a while.
                say(str(error))
                return 1
            finally:
                self._stop()

    def _start(self, lock: RunLock) -> None:
        left = stop_leftovers(lock.leftovers(), self._in_a_hurry)
        if left:
            noun = "process" if left == 1 else "processes"
            say(f"Stopped {left} {noun} that an earlier run left behind.")
        ports = self._ports()
        port = next(ports)
        address = f"http://{LOOPBACK}:{port}"
        lock.record(address, [])
        database = self._database()
        url = database.url
        environment = child_environment(self._given, url, address, port)
        self._run_migrations(environment)
        self._add_examples(environment)
        self._children.start(_API, _role("api"), environment)
        lock.record(address, self._children.pids)
        # Before the workers: they have webhooks for its mock receiver at once.
        self._wait_until_ready(_API, port)
        workers = {
            f"worker {number}": next(ports) for number in range(1, self._options.workers + 1)
        }
        for name, own in workers.items():
            worker_id = name.replace(" ", "-")
            environment = child_environment(self._given, url, address, own, worker_id)
            self._children.start(name, _role("worker"), environment)
        lock.record(address, self._children.pids)
        for name, own in workers.items():
            self._wait_until_ready(name, own)
        say(_welcome(address, database, self._options.workers))

    def _watch(self) -> NoReturn:
        while True:
            self._pause()

    def _stop(self) -> None:
        if self._children.pids:
            say("\nStopping; Ctrl-C again kills at once.")
        self._children.stop(self._in_a_hurry)
        if self._cluster is not None:
            self._cluster.stop()

    def _database(self) -> Database:
        url = self._given.get("DATABASE_URL")
        if url is not None:
            # Not a word of it: only the product knows which part of what is set is a secret.
            say("Database: the one in DATABASE_URL")
            return Database(url, shown="the one in DATABASE_URL")
        begun = time.monotonic()
        self._cluster = Cluster(find_home(self._project, find_server()))
        database = self._cluster.start()
        taken = time.monotonic() - begun
        say(f"Database: {database.shown} (a server of this project's own, {taken:.1f} s)")
        return database

    def _run_migrations(self, environment: Mapping[str, str]) -> None:
        status = self._run_to_end("migrate", _role("migrate"), environment)
        if status != 0:
            raise LocalError(f"Bringing the database to its schema failed ({status}).")

    def _add_examples(self, environment: Mapping[str, str]) -> None:
        with tempfile.TemporaryFile() as output:
            status = self._run_to_end("seed", [_SEED], environment, output)
            if status != 0:
                raise LocalError(f"Adding the example jobs failed ({status}).")
            output.seek(0)
            say(describe_seeding(output.read()))

    def _run_to_end(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: IO[bytes] | None = None,
    ) -> int:
        """Run one process and return its exit status; a signal to us ends the wait."""
        self._children.start(name, arguments, environment, output)
        while True:
            ended = self._children.first_ended()
            if ended is not None:
                return ended.status
            self._pause_for_signal()

    def _ports(self) -> Iterator[int]:
        """The API's port first, then one for each worker."""
        asked = asked_port(self._options.port, self._given)
        if asked is not None and not is_free(asked):
            raise LocalError(
                f"Port {asked} is taken by another program. "
                "Stop that, or choose another port with --port."
            )
        first = asked or _USUAL_PORT
        ports = free_ports(range(first, HIGHEST + 1))
        port = next(ports)
        if port != first:
            say(f"Port {first} is taken by another program; the API gets {port}.")
        yield port
        yield from ports

    def _wait_until_ready(self, name: str, port: int) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not _is_healthy(port):
            if time.monotonic() > deadline:
                raise LocalError(f"{name} did not become ready within {_READY_SECONDS} s.")
            self._pause()

    def _pause(self) -> None:
        """Wait a moment.

        Raises:
            StopAsked: when a signal came.
            LocalError: when a child ended that should run.
        """
        ended = self._children.first_ended()
        if ended is not None:
            raise LocalError(f"{ended.name} ended unexpectedly with exit status {ended.status}.")
        self._pause_for_signal()

    def _pause_for_signal(self) -> None:
        if self._signals:
            raise StopAsked
        time.sleep(_POLL_SECONDS)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        # Only counted: what is under way finds out at its next pause, in a state it knows.
        self._signals += 1

    def _in_a_hurry(self) -> bool:
        return self._signals > 1


def _role(role: str) -> list[str]:
    """The arguments that start the product in a role."""
    return ["-m", "notify_queue", role]


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_PING_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _welcome(address: str, database: Database, workers: int) -> str:
    return f"""
Notify Queue is running.
  API       {address}
  Workers   {workers}
  Database  {database.shown}
  Stop      Ctrl-C (the data is kept)

Try it: schedule a notification for three seconds from now, then ask for it by its id.

curl -s {address}/notifications -H 'content-type: application/json' -d '{{
  "recipient": "ada@example.com",
  "channel": "EMAIL",
  "priority": "NORMAL",
  "payload": {{"subject": "Hello", "body": "Right on time"}},
  "delaySeconds": 3,
  "idempotencyKey": "first-steps-1"
}}'
"""
