"""Where a server lives: in the project if its user can go there, else in a place of its own."""

import os
import pwd
from pathlib import Path

import pytest

from notify_queue.local import home
from notify_queue.local.account import Account, server_account
from notify_queue.local.binaries import find_server
from notify_queue.local.errors import LocalError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@pytest.fixture(autouse=True)
def _shelters_here(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "_SHELTERS", open_folder)


def test_a_project_the_server_can_reach_holds_its_files(open_folder: Path) -> None:
    project = open_folder / "project"
    project.mkdir()
    found = home.find_home(project, find_server())
    assert found.folder == project / ".local"


def test_the_servers_user_is_not_root() -> None:
    account = server_account()
    uid = os.geteuid() if account.uid is None else account.uid
    assert uid != 0


@as_root
def test_a_closed_project_is_left_closed_and_the_files_lie_outside(
    open_folder: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    found = home.find_home(tmp_path, find_server())
    assert found.folder.parent == open_folder
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@as_root
def test_programs_in_a_closed_folder_are_copied_out_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    package = find_server().parents[1]
    (tmp_path / package.name).symlink_to(package)
    libraries = package.with_name(f"{package.name}.libs")
    (tmp_path / libraries.name).symlink_to(libraries)
    closed = tmp_path / package.name / "pginstall" / "bin"
    account = server_account()
    assert not account.can_run(closed / "initdb")

    copied = home.reachable_programs(tmp_path, closed, account)
    assert account.can_run(copied / "initdb")
    made = (copied / "initdb").stat().st_ino
    assert home.reachable_programs(tmp_path, closed, account) == copied
    assert (copied / "initdb").stat().st_ino == made


@as_root
def test_a_shelter_that_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    stranger = pwd.getpwnam("nobody")
    os.chown(home.shelter(tmp_path), stranger.pw_uid, stranger.pw_gid)
    with pytest.raises(LocalError, match="belongs to another user"):
        home.shelter(tmp_path)


def test_a_link_in_place_of_the_shelter_is_refused(tmp_path: Path) -> None:
    folder = home.shelter(tmp_path)
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LocalError, match="cannot be trusted"):
        home.shelter(tmp_path)


@as_root
def test_whoever_made_the_data_runs_the_server_again(open_folder: Path) -> None:
    project = open_folder / "project"
    made = project / ".local" / "postgres"
    made.mkdir(parents=True)
    nobody = pwd.getpwnam("nobody")
    os.chown(made, nobody.pw_uid, nobody.pw_gid)
    assert home.find_home(project, find_server()).account == Account(nobody.pw_uid, nobody.pw_gid)
