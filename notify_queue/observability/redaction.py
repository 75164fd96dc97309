"""Errors without what they quote.

An exception's text, a statement's parameters and the server's own DETAIL line can all hold a
recipient or a payload, and so can local variables and source lines (pitfall A9). What is left is
enough to find the place: class names, SQLSTATE, constraint, and file, line and function.
"""

from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[2]
_MAX_FRAMES: Final = 30
_MAX_CAUSES: Final = 10


def describe_error(error: BaseException) -> dict[str, Any]:
    """Say what an error is, for the ``error`` field of a log line.

    A database error becomes ``name``, ``code`` (SQLSTATE) and ``constraint``, the last two None
    where the server gave none. Any other error becomes ``name`` and ``stack``, innermost frame
    last, and ``causes`` by class name if there are any.
    """
    # Told by its attributes, since the drivers may be known to the persistence layer only.
    driver = next((e for e in (getattr(error, "orig", None), error) if hasattr(e, "pgcode")), None)
    if driver is not None:
        constraint = getattr(getattr(driver, "diag", None), "constraint_name", None)
        return {"name": type(driver).__name__, "code": driver.pgcode, "constraint": constraint}
    described: dict[str, Any] = {"name": type(error).__name__, "stack": _stack(error)}
    causes = [type(cause).__name__ for cause in _causes(error)]
    if causes:
        described["causes"] = causes
    return described


def _stack(error: BaseException) -> list[str]:
    """List the frames nearest to the error; a runaway recursion has a thousand."""
    frames = [
        f"{_place(frame.f_code.co_filename)}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    return frames[-_MAX_FRAMES:]


def _place(filename: str) -> str:
    """Name a file by its place in the project or in its library, not on this machine."""
    _, installed, inside = filename.rpartition("site-packages/")
    if installed:
        return inside
    path = Path(filename)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name


def _causes(error: BaseException) -> Iterator[BaseException]:
    for _ in range(_MAX_CAUSES):
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None:
            return
        yield cause
        error = cause
