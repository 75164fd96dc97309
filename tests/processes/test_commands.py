"""The two commands find a Python, install what is pinned once, and hand over.

They run in a small project of their own: its pins name nothing, so that no test needs a network.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.folders import folder_for_everybody

ROOT = Path(__file__).resolve().parents[2]
SAYS_HELLO = "import os, sys\nprint('hello', os.getcwd(), sys.prefix, sys.argv[1:])\n"
INSTALLS = "Installing from requirements-"


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A project whose ``.venv`` is made, as the first run makes it."""
    with folder_for_everybody() as folder:
        project = folder / "a project"
        (project / "notify_queue" / "local").mkdir(parents=True)
        (project / "notify_queue" / "local" / "__main__.py").write_text(SAYS_HELLO)
        (project / "pytest.py").write_text(SAYS_HELLO)
        shutil.copytree(ROOT / "scripts", project / "scripts")
        for extra in ("local", "dev"):
            (project / f"requirements-{extra}.txt").write_text(f"# nothing for {extra}\n")
        first = _run(project, "dev")
        assert first.returncode == 0, first.stderr
        assert "Making .venv" in first.stderr
        yield project


@pytest.fixture
def project(installed: Path) -> Path:
    """The same, as after a run of both commands."""
    assert _run(installed, "test").returncode == 0
    return installed


def _run(
    project: Path, command: str, *arguments: str, cwd: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [project / "scripts" / command, *arguments],
        cwd=cwd,
        env={"PYTHON": sys.executable} | kept | settings,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["dev", "test"])
def test_a_later_run_installs_nothing_and_passes_its_arguments_on(
    project: Path, tmp_path: Path, command: str
) -> None:
    done = _run(project, command, "--help", "two words", "*", cwd=tmp_path)
    assert done.stderr == ""
    expected = ["hello", str(project), str(project / ".venv"), "['--help', 'two words', '*']"]
    assert done.stdout.strip() == " ".join(expected)


def test_the_test_pins_satisfy_dev_too(project: Path) -> None:
    (project / ".venv" / "notify-queue-installed").unlink()
    assert INSTALLS in _run(project, "test").stderr
    assert _run(project, "dev").stderr == ""


def test_changed_pins_are_installed_once(project: Path) -> None:
    with (project / "requirements-local.txt").open("a") as pins:
        pins.write("# changed\n")
    assert f"{INSTALLS}local.txt" in _run(project, "dev").stderr
    assert _run(project, "dev").stderr == ""


def test_an_install_that_was_cut_short_is_done_again(project: Path) -> None:
    (project / ".venv" / "notify-queue-installed").unlink()
    done = _run(project, "dev")
    assert INSTALLS in done.stderr
    assert "Making .venv" not in done.stderr
    assert done.stdout.startswith("hello")


def test_a_venv_whose_python_is_gone_is_made_anew(project: Path) -> None:
    for name in ("python", "python3"):
        (project / ".venv" / "bin" / name).unlink()
    done = _run(project, "dev")
    assert "Making .venv" in done.stderr
    assert done.stdout.startswith("hello")


def test_a_working_venv_stays_whatever_python_happens_to_be_first(project: Path) -> None:
    settings = project / ".venv" / "pyvenv.cfg"
    good = settings.read_text()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    settings.write_text(good.replace(f"version = {version}.", "version = 3.99."))
    try:
        done = _run(project, "dev", PYTHON="")
    finally:
        settings.write_text(good)
    assert "Making .venv" not in done.stderr
    assert done.returncode == 0


def test_pips_own_words_are_shown_when_it_fails(project: Path) -> None:
    pins = project / "requirements-local.txt"
    good = pins.read_text()
    pins.write_text("this is no pin\n")
    try:
        done = _run(project, "dev")
    finally:
        pins.write_text(good)
    assert done.returncode == 1
    assert "pip failed" in done.stderr
    assert "Invalid requirement" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(project: Path) -> None:
    (project / ".venv" / "notify-queue-installed").unlink()
    project.chmod(0o555)
    try:
        done = _run(project, "dev")
    finally:
        project.chmod(0o755)
    assert done.returncode == 1
    assert f"you may not write to {project}" in done.stderr


def test_a_python_that_is_too_old_is_refused_in_words(project: Path, tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$2" in *exit*) exit 1 ;; *) echo Python 3.9.1 ;; esac\n')
    old.chmod(0o755)
    done = _run(project, "dev", PYTHON=str(old))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert f"{old} is Python 3.9.1" in done.stderr
    assert f"Only PYTHON={old} was tried" in done.stderr


def test_a_stand_in_that_does_not_run_is_passed_over(project: Path, tmp_path: Path) -> None:
    stand_in = tmp_path / "python3"
    stand_in.write_text("#!/bin/sh\nexit 127\n")
    stand_in.chmod(0o755)
    (tmp_path / "python3.11").symlink_to(sys.executable)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = _run(project, "dev", PYTHON="", PATH=path)
    assert done.returncode == 0
    assert done.stdout.startswith("hello")


def test_two_first_runs_at_once_do_not_install_over_each_other(project: Path) -> None:
    (project / ".venv" / "notify-queue-installed").unlink()
    started = [
        subprocess.Popen(
            [project / "scripts" / "dev"],
            env=os.environ | {"PYTHON": sys.executable},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [run.communicate()[1] for run in started]
    assert [run.returncode for run in started] == [0, 0]
    assert "".join(said).count(INSTALLS) == 1
