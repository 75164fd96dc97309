"""Which user the database server runs as: PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from notify_queue.local.errors import LocalError

# The first that exists is used when we are root.
_UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user to run the server's programs as. Without ids it is whoever runs us."""

    uid: int | None = None
    gid: int | None = None

    def run(
        self, argv: Sequence[str | Path], typed: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end as this user, with ``typed`` on its standard input."""
        return subprocess.run(  # noqa: S603 - the server's own programs
            argv,
            input=typed,
            stdin=None if typed is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=_plain_environment(),
            cwd="/",
            user=self.uid,
            group=self.gid,
            extra_groups=None if self.uid is None else [],
            # A Ctrl-C on the terminal must not break a server that is just being made.
            start_new_session=True,
        )

    def can_run(self, program: Path) -> bool:
        """Whether this user reaches ``program`` and all it needs to start."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except OSError:
            return False

    def can_enter(self, folder: Path) -> bool:
        """Whether this user can reach what lies in ``folder``."""
        return self.run(["sh", "-c", 'cd "$1"', "sh", folder]).returncode == 0

    def own(self, path: Path) -> None:
        """Make ``path`` this user's own."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Ourselves; or, when we are root, a user with no rights beyond the server.

    Raises:
        LocalError: when root finds no such user.
    """
    if os.geteuid() != 0:
        return Account()
    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise LocalError(
        "PostgreSQL does not run as root, and there is neither a user "
        f"{' nor '.join(_UNPRIVILEGED)} to run it as."
    )


def owner(folder: Path) -> Account:
    """The account that owns ``folder``: who made a server's files has to run it."""
    status = folder.stat()
    return Account(status.st_uid, status.st_gid)


def _plain_environment() -> dict[str, str]:
    """Nothing that could bend the server's programs, such as PGDATA; messages in English."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
