"""The texts made from the declarations: the listing, the example file, the table."""

from itertools import groupby
from textwrap import fill
from typing import Final

from notify_queue.settings.declaration import Declaration
from notify_queue.settings.values import Settings, declarations

_HEADER: Final = """\
# Settings of Notify Queue. Copy this file to .env and change what you need.
# Real environment variables win over it. A commented line shows the default.
# Made from the declarations in notify_queue/settings: python -m notify_queue.settings
"""
_WIDTH: Final = 100


def describe(settings: Settings) -> str:
    """What is in force, one ``NAME=value`` a line, with passwords masked."""
    return "\n".join(
        f"{name}={_shown(declaration, getattr(settings, name.lower()))}"
        for name, declaration in declarations().items()
    )


def _shown(declaration: Declaration, value: object) -> str:
    return declaration.shown(value)


def render_env_example() -> str:
    """Write ``.env.example``: every setting with its meaning, rule and default."""
    groups = groupby(declarations().items(), key=lambda item: item[1].group)
    parts = [_HEADER]
    for group, members in groups:
        parts.append(f"# {group}\n")
        parts.extend(_example(name, declaration) for name, declaration in members)
    return "\n".join(parts)


def _example(name: str, declaration: Declaration) -> str:
    rule = declaration.kind.rule.replace("`", "")
    text = fill(declaration.text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    note = f"{text}\n# {rule}; {_default(declaration).replace('`', '')}\n"
    if declaration.required:
        return f"{note}{name}={declaration.example}\n"
    shown = "" if declaration.default is None else declaration.shown(declaration.default)
    return f"{note}#{name}={shown}\n"


def _default(declaration: Declaration) -> str:
    if declaration.required:
        return "required"
    if declaration.default is None:
        return f"default {declaration.otherwise}"
    return f"default `{declaration.shown(declaration.default)}`"


def render_table() -> str:
    """Write the table of docs/settings.md."""
    rows = ["| Name | Default | Accepted | Meaning |", "| --- | --- | --- | --- |"]
    rows.extend(
        f"| `{name}` | {_default(declaration).removeprefix('default ')} "
        f"| {declaration.kind.rule} | {declaration.text} |"
        for name, declaration in declarations().items()
    )
    return "\n".join(rows) + "\n"
