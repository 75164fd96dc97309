"""Prepare ``.venv`` and run a module of it: ``bootstrap.py EXTRA MODULE [ARGUMENT...]``.

``EXTRA`` names the pins to install (``requirements-EXTRA.txt``). What is installed already is
left alone, so every run but the first takes no time. Standard library only: this runs before
anything is installed.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
OLDEST = (3, 11)
LOCK = ROOT / ".local" / "install.lock"
# Written last, so that an install that was cut short is done again.
STAMP = VENV / "notify-queue-installed"

# The pins of an extra, and what else they satisfy: the test pins hold all of the local ones,
# so the two commands do not install over each other.
SATISFIES = {"local": ("local",), "dev": ("local", "dev")}

TAIL_LINES = 20
NO_VENV_MODULE = (
    "this Python cannot make virtual environments.\n"
    "On Debian and Ubuntu install the package python3-venv, or name another Python:\n"
    "PYTHON=/path/to/python3.11"
)


class BootstrapError(Exception):
    """The environment cannot be prepared. The text says why and what to do."""


def requirements(extra: str) -> Path:
    """The file that pins everything ``extra`` needs."""
    return ROOT / f"requirements-{extra}.txt"


def stamp_line(extra: str) -> str:
    """What the stamp says once ``extra`` is installed."""
    pins = hashlib.sha256(requirements(extra).read_bytes()).hexdigest()
    major, minor = venv_version() or (0, 0)
    return f"{extra} {pins} python{major}.{minor}"


def is_installed(extra: str) -> bool:
    """Whether ``.venv`` is usable and holds ``extra`` as pinned."""
    return is_sound() and STAMP.exists() and stamp_line(extra) in STAMP.read_text().splitlines()


def is_sound() -> bool:
    """Whether ``.venv`` was made in this folder, by a Python that is fit and still there.

    A fit one stays even when another Python runs this: which one ``python3`` means changes with
    the shell, and rebuilding each time would undo the work of the last run. Naming one in the
    environment variable PYTHON is a request, and is followed.
    """
    version = venv_version()
    if version is None or version < OLDEST or not os.access(PYTHON, os.X_OK):
        return False
    asked_for_another = bool(os.environ.get("PYTHON")) and version != sys.version_info[:2]
    return made_here() and not asked_for_another


def venv_version() -> tuple[int, int] | None:
    """Major and minor version of the Python that made ``.venv``; None without one."""
    try:
        settings = (VENV / "pyvenv.cfg").read_text()
    except OSError:
        return None
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", settings, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def made_here() -> bool:
    """Whether the paths written into ``.venv`` are its own: moved or copied, it is broken."""
    try:
        text = (VENV / "bin" / "activate").read_text()
    except OSError:
        return False
    # Newer Pythons write it as a shell reads it, older ones as it is.
    return str(VENV) in text or shlex.quote(str(VENV)) in text


def has_pip() -> bool:
    """Whether pip runs in ``.venv``: it does not when making it was cut short."""
    argv = [str(PYTHON), "-m", "pip", "--version"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0  # noqa: S603 - our own interpreter


@contextlib.contextmanager
def only_installer() -> Iterator[None]:
    """Wait until no other run installs. The lock goes with the process, however it ends."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another run is installing; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare(extra: str) -> None:
    """Bring ``.venv`` to what ``extra`` needs, showing each step and its time."""
    if is_installed(extra):
        return
    refuse_foreign_folder()
    with only_installer():
        if is_installed(extra):
            return
        if not (is_sound() and has_pip()):
            make_venv()
        install(extra)
        STAMP.write_text("".join(f"{stamp_line(each)}\n" for each in SATISFIES[extra]))


def refuse_foreign_folder() -> None:
    """Say whose folder it is before half of an install is left in it."""
    for folder in (ROOT, VENV, LOCK.parent):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise BootstrapError(
                f"you may not write to {folder}, which belongs to {owner_of(folder)}.\n"
                "Run this as that user, or take the folder over first: "
                f'sudo chown -R "$(id -un)" {folder}'
            )


def owner_of(folder: Path) -> str:
    """The name of the folder's owner, or its number where it has no name."""
    try:
        return folder.owner()
    except KeyError:
        return f"user {folder.stat().st_uid}"


def make_venv() -> None:
    """Make ``.venv`` anew."""
    with step(f"Making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}"):
        if VENV.is_symlink():
            VENV.unlink()
        elif VENV.exists():
            shutil.rmtree(VENV)
        argv = [sys.executable, "-m", "venv", str(VENV)]
        made = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter
    if made.returncode != 0:
        output = made.stdout + made.stderr
        missing = "ensurepip" in output or "No module named venv" in output
        raise BootstrapError(NO_VENV_MODULE if missing else f"making .venv failed:\n{output}")


def install(extra: str) -> None:
    """Install the pins of ``extra``; pip's own words are shown only when it fails."""
    pins = requirements(extra)
    total = len(re.findall(r"^[A-Za-z].*==", pins.read_text(), re.MULTILINE))
    argv = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    argv += ["--require-hashes", "-r", str(pins)]
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with step(f"Installing from {pins.name} (up to {total} packages)"):
        pip = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 - our own interpreter
        with pip:
            follow(pip, tail, total)
    if pip.returncode != 0:
        raise BootstrapError(f"pip failed; the end of what it said:\n{''.join(tail)}")


def follow(pip: subprocess.Popen[str], tail: deque[str], total: int) -> None:
    """Turn pip's output into a few lines of progress, keeping its end."""
    seen = 0
    for line in pip.stdout or ():
        tail.append(line)
        if line.startswith(("Collecting ", "Requirement already satisfied")):
            seen += 1
            if seen % 10 == 0:
                say(f"  {seen} of {total} packages found")
        elif line.startswith("Installing collected packages"):
            say("  unpacking")


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Say what begins, and how long it took once it is done."""
    say(f"{what} ...")
    begun = time.monotonic()
    yield
    say(f"  {time.monotonic() - begun:.1f} s")


def say(line: str) -> None:
    """Print one line of progress at once. Standard output belongs to the command itself."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Prepare, then become the command. Returns, with an exit status, only when that failed."""
    extra, module, *arguments = sys.argv[1:]
    try:
        prepare(extra)
    except (BootstrapError, OSError) as error:
        say(f"Notify Queue cannot be installed: {error}")
        return 1
    except KeyboardInterrupt:
        say("Interrupted; the next run goes on from here.")
        return 130
    os.chdir(ROOT)
    return os.execv(PYTHON, [str(PYTHON), "-m", module, *arguments])  # noqa: S606 - no shell wanted


if __name__ == "__main__":
    sys.exit(main())
