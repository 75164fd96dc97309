"""Become a command that ends when its parent does.

    tether.py PARENT_PID SIGNAL UID GID COMMAND [ARGUMENT...]

Without this a runner that is killed outright leaves its children running. Linux sends the signal
by itself once asked to; elsewhere the next start finds what was left. UID and GID are -1 to stay
who we are. Run by path and without site packages, so it starts in a few milliseconds.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def tethered(
    command: Sequence[str], on_parent_death: signal.Signals, uid: int = -1, gid: int = -1
) -> list[str]:
    """The command line that runs ``command`` tied to this process."""
    own = [sys.executable, "-I", "-S", __file__]
    return [*own, str(os.getpid()), str(int(on_parent_death)), str(uid), str(gid), *command]


def main() -> None:
    """Drop to the user, ask for the signal, become the command."""
    parent, signal_number, uid, gid = map(int, sys.argv[1:5])
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        # After the change of user, which would clear it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("The parent ended before its child began.")
    # Python ignores SIGPIPE and a command would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(sys.argv[5], sys.argv[5:])  # noqa: S606 - becoming the command is the point


if __name__ == "__main__":
    main()
