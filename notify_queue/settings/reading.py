"""From the environment to settings: every broken rule at once, and never a value."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dotenv import dotenv_values
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validates_schema

from notify_queue.settings.declaration import CROSS_CHECKS, Declaration
from notify_queue.settings.kinds import Kind
from notify_queue.settings.values import Settings, declarations

# EX_CONFIG of sysexits.h: supervisors can tell a bad setting from a crash.
EXIT_CODE: Final = 78


class InvalidSettingsError(Exception):
    """One or more settings break a rule. Its text has one line a rule and no values."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        lines = [f"  - {name}: {message}" for name, message in problems]
        super().__init__("\n".join(["Invalid environment configuration:", *lines]))


class _Variable(fields.Field[Any]):
    """One environment variable, read by its kind."""

    def __init__(self, kind: Kind, **options: Any) -> None:
        super().__init__(**options)
        self._kind = kind

    def _deserialize(self, value: Any, *_args: Any, **_kwargs: Any) -> Any:
        return self._kind.read(value)


class _Environment(Schema):
    """What holds for any environment; the variables are added from the declarations."""

    class Meta:
        """An environment holds much that is not ours."""

        unknown = EXCLUDE

    @validates_schema(skip_on_field_errors=False)
    def _check_settings_together(self, values: Mapping[str, Any], **_: Any) -> None:
        broken: dict[str, list[str]] = {}
        for check in CROSS_CHECKS:
            if check.broken(values):
                broken.setdefault(check.names[0], []).append(check.message)
        if broken:
            raise ValidationError(dict(broken))


def _variable(declaration: Declaration) -> _Variable:
    if declaration.required:
        messages = {"required": "is required"}
        return _Variable(declaration.kind, required=True, error_messages=messages)
    if declaration.default is None:
        return _Variable(declaration.kind)
    return _Variable(declaration.kind, load_default=declaration.default)


_SCHEMA: Final = _Environment.from_dict(
    {name: _variable(declaration) for name, declaration in declarations().items()}
)()


def load(environ: Mapping[str, str]) -> Settings:
    """Read and check the settings in ``environ``; an empty variable counts as unset.

    Raises:
        InvalidSettingsError: with every broken rule of every setting.
    """
    given = {name: environ[name] for name in declarations() if environ.get(name)}
    try:
        values: dict[str, Any] = _SCHEMA.load(given)
    except ValidationError as error:
        problems = error.messages_dict
    else:
        values.setdefault("DATABASE_DIRECT_URL", values["DATABASE_URL"])
        values.setdefault("WORKER_ID", str(uuid4()))
        values.setdefault("WEBHOOK_URL", None)
        values.setdefault("WEBHOOK_SECRET", ())
        return Settings(**{name.lower(): value for name, value in values.items()})
    # Raised out here so that marshmallow's error, which holds the values, is no part of it.
    raise InvalidSettingsError(
        (name, message) for name in declarations() for message in problems.get(name, ())
    )


def load_from_process() -> Settings:
    """Read the process environment over a ``.env`` file in the working directory.

    A variable of the environment wins even when it is empty.

    Raises:
        InvalidSettingsError: for a broken rule, or a file that cannot be read.
    """
    return load(_env_file() | dict(os.environ))


def _env_file() -> dict[str, str]:
    try:
        # No interpolation: a dollar sign in a password is a dollar sign.
        lines = dotenv_values(Path.cwd() / ".env", interpolate=False)
    except (OSError, UnicodeDecodeError):
        lines = None
    if lines is None:
        raise InvalidSettingsError([(".env", "cannot be read as a UTF-8 text file")])
    return {name: value for name, value in lines.items() if value is not None}
