"""Looking at processes of the machine, ours or not."""

import subprocess
from pathlib import Path


def command_line(pid: int) -> str:
    """The command line of a running process; empty when there is none (or it is only a zombie)."""
    if Path("/proc/self/cmdline").exists():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return ""
        return b" ".join(words).decode(errors="replace").strip()
    listing = subprocess.run(  # noqa: S603 - nothing but a number goes in
        ["ps", "-o", "args=", "-p", str(pid)],  # noqa: S607 - wherever the system keeps it
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if "<defunct>" in listing.stdout else listing.stdout.strip()
