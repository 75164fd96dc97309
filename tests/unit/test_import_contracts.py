"""The import contracts hold, and would not if they were broken.

A contract whose list stands on one line, or that names a folder nobody has, is accepted and checks
nothing: so violations are planted in a copy and must be found.
"""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in ``folder`` against its own setup.cfg."""
    command = [str(LINT), "--config", "setup.cfg", "--no-cache"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, to be spoiled."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "notify_queue", tmp_path / "notify_queue", ignore=ignore)
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    return tmp_path


def test_every_import_keeps_to_the_contracts() -> None:
    report = lint(ROOT)
    assert report.returncode == 0, report.stdout
    assert "0 broken" in report.stdout


def test_a_faithful_copy_keeps_them_too(copy: Path) -> None:
    assert lint(copy).returncode == 0


@pytest.mark.parametrize(
    ("path", "line", "contract"),
    [
        ("domain/retry.py", "import random", "Domain does no I/O"),
        (
            "worker/claim.py",
            "import notify_queue.worker.complete",
            "Worker steps do not know each other",
        ),
        (
            "notifications/read.py",
            "import notify_queue.persistence.repositories.reading",
            "Only the unit of work opens repositories and models",
        ),
        ("delivery/provider.py", "import sqlalchemy", "Only persistence speaks SQL"),
        (
            "reports/__init__.py",
            "import notify_queue.domain",
            "Requests flow down, results flow back as return values",
        ),
    ],
    ids=["impure domain", "two steps", "repository", "sql", "folder in no layer"],
)
def test_a_planted_violation_is_found(copy: Path, path: str, line: str, contract: str) -> None:
    target = copy / "notify_queue" / path
    target.parent.mkdir(exist_ok=True)
    with target.open("a") as module:
        module.write(f"\n{line}\n")
    report = lint(copy)
    assert report.returncode == 1
    assert f"{contract} BROKEN" in report.stdout


def test_every_list_of_a_contract_has_one_value_a_line() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lists = {
        f"{section} {key}": value
        for section in config.sections()
        if section.startswith("importlinter:")
        for key, value in config[section].items()
        if key == "layers" or key.endswith(("modules", "importers", "containers", "ancestors"))
    }
    assert len(lists) >= len(config.sections()) - 4
    for name, value in lists.items():
        assert value.startswith("\n"), name
        assert all(" " not in line or " | " in line for line in value.split("\n")), name
