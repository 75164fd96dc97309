"""What the person who starts the runner has set, and what their children get on top."""

import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from notify_queue.local.errors import LocalError
from notify_queue.local.ports import HIGHEST


def read_given(project: Path) -> dict[str, str]:
    """What is set in the environment or else in the project's ``.env``, as the product reads it.

    A variable that is empty counts as unset, and hides the file's line for it.

    Raises:
        LocalError: the file is not text.
    """
    try:
        from_file = dotenv_values(project / ".env", interpolate=False)
    except UnicodeDecodeError as error:
        raise LocalError("The file .env is not valid UTF-8.") from error
    return {name: value for name, value in (from_file | dict(os.environ)).items() if value}


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
    given: Mapping[str, str],
    database_url: str,
    api: str,
    port: int,
    worker_id: str | None = None,
) -> dict[str, str]:
    """The environment of one process of the product; ``api`` is the address of the API.

    What is not named here it reads by itself, from the environment or from ``.env``. Webhooks go to
    the mock receiver of the API unless they are to go elsewhere.
    """
    usual = {
        "NODE_ENV": "development",
        "WEBHOOK_URL": f"{api}/webhooks/mock",
        "WEBHOOK_ALLOW_PRIVATE": "true",
        "WEBHOOK_MOCK_RECEIVER": "true",
    }
    own = {name: given.get(name, value) for name, value in usual.items()}
    own |= {"DATABASE_URL": database_url, "PORT": str(port)}
    if worker_id is not None:
        own["WORKER_ID"] = worker_id
    return dict(os.environ) | own
