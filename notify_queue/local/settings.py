"""What the person who starts the runner has set, and what their children get on top."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from dotenv import dotenv_values

from notify_queue.local.errors import LocalError
from notify_queue.local.ports import HIGHEST


def read_given(project: Path) -> dict[str, str]:
    """What is set in the environment or else in the project's ``.env``; empty counts as unset."""
    from_file = {
        name: value for name, value in dotenv_values(project / ".env").items() if value is not None
    }
    from_environment = {name: value for name, value in os.environ.items() if value}
    return {name: value for name, value in (from_file | from_environment).items() if value}


def asked_port(option: int | None, given: Mapping[str, str]) -> int | None:
    """The port the API was asked to listen on, by option or by ``PORT``; None when it was not.

    Raises:
        LocalError: when it is no port.
    """
    asked = given.get("PORT") if option is None else str(option)
    if asked is None:
        return None
    if not (asked.strip().isdecimal() and 1 <= int(asked) <= HIGHEST):
        raise LocalError(f"The port has to be a whole number from 1 to {HIGHEST}.")
    return int(asked)


def child_environment(
    given: Mapping[str, str], database_url: str, port: int, worker_id: str | None = None
) -> dict[str, str]:
    """The environment of one process of the product.

    What is not named here it reads by itself, from the environment or from ``.env``.
    """
    own = {
        "DATABASE_URL": database_url,
        "NODE_ENV": given.get("NODE_ENV", "development"),
        "PORT": str(port),
    }
    if worker_id is not None:
        own["WORKER_ID"] = worker_id
    return dict(os.environ) | own


def without_secrets(database_url: str) -> str:
    """The URL without its password and without its options, which can hold one too."""
    try:
        parts = urlsplit(database_url)
        host = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        return "(not a URL)"
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{host}{parts.path}"
