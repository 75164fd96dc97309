"""The development runner starts everything, says what it does, and leaves nothing behind."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from notify_queue.local.processes import command_line
from tests.support.folders import folder_for_everybody
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ROOT / "tests" / "support" / "stand_in.py"
ELSEWHERE = "postgresql://ada:s3cret@db.example/queue"
READY = "Stop      Ctrl-C"

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties children to us")


class Runner:
    """The runner, in a project whose product is a stand-in."""

    def __init__(self, project: Path, *options: str, **settings: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "notify_queue.local", *options],
            cwd=project,
            env=kept | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""

    def read_until(self, text: str) -> str:
        """Read what it and its children say, up to the line with ``text``."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.said += line
            if text in line:
                return self.said
        raise AssertionError(f"it never said {text!r}, but:\n{self.said}")

    def read_to_end(self) -> str:
        """Read on until it and all of its children are gone."""
        assert self.popen.stdout is not None
        self.said += self.popen.stdout.read()
        return self.said

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Signal it and wait until it and all of its children are gone."""
        self.popen.send_signal(number)
        self.read_to_end()
        return self.popen.wait()

    def address(self) -> str:
        """Where the API is."""
        found = re.search(r"API +(http://\S+)", self.said)
        assert found, self.said
        return found[1]


@pytest.fixture(scope="module")
def project() -> Iterator[Path]:
    with folder_for_everybody() as folder:
        package = folder / "notify_queue"
        shutil.copytree(ROOT / "notify_queue" / "local", package / "local")
        (package / "__init__.py").touch()
        shutil.copy(STAND_IN, package / "__main__.py")
        (folder / "scripts").mkdir()
        shutil.copy(STAND_IN, folder / "scripts" / "seed.py")
        yield folder


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def _start(stack: contextlib.ExitStack, project: Path, *options: str, **settings: str) -> Runner:
    runner = Runner(project, *options, **settings)
    stack.callback(_clear_away, runner)
    return runner


def _clear_away(runner: Runner) -> None:
    if runner.popen.poll() is None:
        runner.popen.kill()
        runner.popen.wait()
    assert runner.popen.stdout is not None
    runner.popen.stdout.close()


def _on_another_database(
    stack: contextlib.ExitStack, project: Path, *options: str, **settings: str
) -> Runner:
    """A runner that needs no server of its own, on ports of its own."""
    port = () if "--port" in options else ("--port", str(free_port()))
    return _start(stack, project, *port, *options, DATABASE_URL=ELSEWHERE, **settings)


def test_a_run_begins_with_everything_and_ends_with_nothing(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _start(stack, project, "--port", str(free_port()))
    said = runner.read_until(READY)
    with urllib.request.urlopen(f"{runner.address()}/health") as answer:
        assert answer.status == 200
    assert re.search(r"Database  postgresql://notify_queue@127\.0\.0\.1:\d+/notify_queue", said)

    assert runner.end() == 0
    assert runner.said.count(" begins ") == 4
    assert runner.said.count(" ends ") == 3
    with socket.socket() as probe:
        port = int(re.findall(r"127\.0\.0\.1:(\d+)/notify_queue", said)[0])
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_workers_have_names_and_ports_of_their_own(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project, "--workers", "3")
    runner.read_until(READY)
    assert runner.end() == 0
    workers = re.findall(r"worker begins (\S+) (\d+)", runner.said)
    assert {name for name, _ in workers} == {"worker-1", "worker-2", "worker-3"}
    ports = {port for _, port in workers} | {runner.address().rsplit(":", 1)[1]}
    assert len(ports) == 4


def test_a_database_that_was_named_is_used_and_its_password_not_shown(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project)
    said = runner.read_until(READY)
    assert "Database: the one in DATABASE_URL" in said
    assert "db.example" not in said
    assert "s3cret" not in said
    assert runner.end() == 0


def test_a_second_run_is_told_about_the_first(stack: contextlib.ExitStack, project: Path) -> None:
    first = _on_another_database(stack, project)
    first.read_until(READY)
    second = _on_another_database(stack, project)
    assert f"running already: process {first.popen.pid}, {first.address()}" in second.read_to_end()
    assert second.popen.wait() == 1
    assert first.popen.poll() is None


@on_linux
def test_after_a_kill_the_children_end_and_the_next_run_begins(
    stack: contextlib.ExitStack, project: Path
) -> None:
    killed = _start(stack, project, "--port", str(free_port()))
    killed.read_until(READY)
    killed.popen.kill()
    # The pipe closes once the last child is gone, and each was asked to end.
    assert killed.read_to_end().count(" ends ") == 3

    following = _start(stack, project, "--port", str(free_port()))
    following.read_until(READY)
    databases = [re.findall(r"Database: (\S+)", each.said) for each in (killed, following)]
    assert databases[0] == databases[1]
    assert following.end() == 0


def test_what_a_killed_run_left_alive_is_ended_and_strangers_are_not(
    stack: contextlib.ExitStack, project: Path
) -> None:
    environment = os.environ | {"PORT": str(free_port())}
    child = subprocess.Popen(
        [sys.executable, "-m", "notify_queue", "worker"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child, subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            assert b"begins" in child.stdout.readline()
            state = {"pid": 1, "address": "", "children": [child.pid, stranger.pid]}
            (project / ".local").mkdir(exist_ok=True)
            (project / ".local" / "dev.lock").write_text(json.dumps(state))

            runner = _on_another_database(stack, project)
            runner.read_until(READY)
            assert "Stopped 1 process that an earlier run left behind" in runner.said
            assert child.wait() == 0
            assert command_line(stranger.pid)
            assert runner.end() == 0
        finally:
            child.kill()
            stranger.kill()


def test_a_port_that_was_asked_for_and_is_taken_is_named(
    stack: contextlib.ExitStack, project: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        by_option = _on_another_database(stack, project, "--port", port)
        assert f"Port {port} is taken" in by_option.read_to_end()
        by_setting = _start(stack, project, PORT=port, DATABASE_URL=ELSEWHERE)
        assert f"Port {port} is taken" in by_setting.read_to_end()
    assert (by_option.popen.wait(), by_setting.popen.wait()) == (1, 1)


def test_the_usual_port_gives_way_to_the_next_when_taken(
    stack: contextlib.ExitStack, project: Path
) -> None:
    with contextlib.ExitStack() as held:
        # If somebody else holds it, all the better.
        with contextlib.suppress(OSError):
            held.enter_context(socket.create_server(("127.0.0.1", 3000)))
        runner = _start(stack, project, DATABASE_URL=ELSEWHERE)
        said = runner.read_until(READY)
        assert "Port 3000 is taken by another program; the API gets 3" in said
        assert not runner.address().endswith(":3000")
        assert runner.end() == 0


@pytest.mark.parametrize(("role", "name"), [("worker", "worker 1"), ("api", "the API")])
def test_when_a_part_ends_by_itself_the_rest_is_stopped(
    stack: contextlib.ExitStack, project: Path, role: str, name: str
) -> None:
    runner = _on_another_database(stack, project, "--workers", "1", STAND_IN_FAILS=role)
    assert f"{name} ended unexpectedly with exit status 3" in runner.read_to_end()
    assert runner.popen.wait() == 1


def test_nothing_is_started_on_a_schema_that_failed(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project, STAND_IN_FAILS="migrate")
    said = runner.read_to_end()
    assert "to its schema failed" in said
    assert "api begins" not in said
    assert runner.popen.wait() == 1


def test_the_examples_are_added_before_anything_runs(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project, "--workers", "1")
    said = runner.read_until(READY)
    order = ["migrate begins", "Examples: 24 jobs added\n", "api begins"]
    assert sorted(order, key=said.index) == order
    assert "seeded" not in said
    assert runner.end() == 0


def test_nothing_is_started_when_the_examples_could_not_be_added(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project, STAND_IN_FAILS="seed")
    said = runner.read_to_end()
    assert "Adding the example jobs failed (3)" in said
    assert "api begins" not in said
    assert runner.popen.wait() == 1


def test_a_second_signal_does_not_wait_for_the_stubborn(
    stack: contextlib.ExitStack, project: Path
) -> None:
    runner = _on_another_database(stack, project, STAND_IN_IGNORES_TERM="api")
    runner.read_until(READY)
    runner.popen.send_signal(signal.SIGINT)
    runner.read_until("worker ends")
    runner.popen.send_signal(signal.SIGINT)
    # Well before the half minute that the first signal allows.
    assert runner.popen.wait(timeout=15) == 0


def test_sigterm_stops_it_as_well(stack: contextlib.ExitStack, project: Path) -> None:
    runner = _on_another_database(stack, project, "--workers", "0")
    runner.read_until(READY)
    assert runner.end(signal.SIGTERM) == 0
    assert "api ends" in runner.said
