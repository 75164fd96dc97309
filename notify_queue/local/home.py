"""Where a server's files live, and programs its user can reach."""

import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from notify_queue.local.account import Account, owner, server_account
from notify_queue.local.errors import LocalError

_SHELTERS = Path("/var/tmp")  # noqa: S108 - what stands there is checked before use


@dataclass(frozen=True, slots=True)
class Home:
    """Who runs the server, with which programs, and where it keeps its files."""

    account: Account
    bin_dir: Path
    folder: Path


def find_home(project: Path, bin_dir: Path) -> Home:
    """A home in the project's ``.local``, or outside where the server's user cannot go there.

    Root's own folders are closed to that user, and stay so.

    Raises:
        LocalError: when there is no such user, or the place outside belongs to somebody else.
    """
    account = server_account()
    inside = project / ".local"
    inside.mkdir(exist_ok=True)
    reachable = account.can_enter(inside) and account.can_run(bin_dir / "initdb")
    folder = inside if reachable else shelter(project)
    made = folder / "postgres"
    if account.uid is not None and made.exists():
        account = owner(made)
    return Home(account, reachable_programs(project, bin_dir, account), folder)


def shelter(project: Path) -> Path:
    """The project's folder outside of it, made if need be. Only its owner may write there.

    Raises:
        LocalError: when the name is taken by another user.
    """
    folder = _SHELTERS / f"notify-queue-{_digest(str(project))}"
    folder.mkdir(mode=0o755, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise LocalError(f"{folder} belongs to another user, so it cannot be trusted. Remove it.")
    folder.chmod(0o755)
    return folder


def reachable_programs(project: Path, bin_dir: Path, account: Account) -> Path:
    """``bin_dir``, or a copy of it (and of what it needs) that ``account`` can run.

    Raises:
        LocalError: when neither runs.
    """
    if account.can_run(bin_dir / "initdb"):
        return bin_dir
    prefix = bin_dir.parent
    # The wheel keeps its libraries beside the package, at a place relative to the programs.
    package = prefix.parent if prefix.name == "pginstall" else prefix
    libraries = package.with_name(f"{package.name}.libs")
    target = shelter(project) / f"server-{_fingerprint(bin_dir)}"
    if not target.exists():
        part = target.with_name(f"{target.name}.{os.getpid()}")
        for tree in (package, libraries):
            if tree.exists():
                shutil.copytree(tree, part / tree.name, symlinks=True)
        _open_to_all(part)
        _settle(part, target)
    copied = target / bin_dir.relative_to(package.parent)
    if not account.can_run(copied / "initdb"):
        raise LocalError(f"The PostgreSQL programs copied to {copied} do not run.")
    return copied


def _settle(part: Path, target: Path) -> None:
    try:
        part.rename(target)
    except OSError:
        # Somebody else was faster with the same copy.
        if not target.exists():
            raise
        shutil.rmtree(part)


def _open_to_all(tree: Path) -> None:
    """Let everybody read a copy of public programs, whatever the original allowed."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | (0o555 if path.is_dir() or mode & 0o100 else 0o444))


def _fingerprint(bin_dir: Path) -> str:
    """Another server, or another version of it, gets another copy."""
    status = (bin_dir / "postgres").stat()
    return _digest(f"{bin_dir} {status.st_size} {status.st_mtime_ns}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
