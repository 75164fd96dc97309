"""Options of the scripts: what they accept, and refusals that name the option and quote nothing.

What was typed may be a recipient, and standard error of a scheduled run is somebody's log.
"""

import argparse
import math
import re
import sys
from datetime import datetime
from typing import Final, NoReturn

from notify_queue.domain.schedule import MissingOffsetError, NotADateTimeError, parse_instant

# So that work which goes on meanwhile is not held up by a run that nobody waits for.
_DEFAULT_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 3600
# A refusal of one of our options, in words that quote nothing: those of the functions below begin
# with "must".
_REFUSED: Final = re.compile(r"argument (?P<option>[a-z/-]+): (?P<rule>must .*|expected one .*)?")
_NAME: Final = re.compile(r"--[a-z]+(-[a-z]+)*")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse. Most of argparse's own messages quote what was typed; they are not passed on."""
        refused = _REFUSED.match(message)
        option = refused["option"] if refused else "the command line"
        refuse(self, f"{option}: {(refused and refused['rule']) or 'not accepted, see --help'}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Begin the command line of a script; every one has ``--dry-run``."""
    made = _Parser(description=description, allow_abbrev=False)
    made.add_argument("--dry-run", action="store_true", help="count and change nothing")
    return made


def add_batch_options(to: argparse.ArgumentParser) -> None:
    """Add what every run in batches has."""
    to.add_argument(
        "--limit",
        type=whole,
        metavar="N",
        help="at most N in all; what remains is counted without it, in a dry run too",
    )
    to.add_argument(
        "--pause",
        type=seconds,
        default=_DEFAULT_PAUSE_S,
        metavar="SECONDS",
        help="between two batches (default: %(default)s)",
    )


def read(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read this process's command line; ends the process with code 2 if it is wrong."""
    arguments, unknown = parser.parse_known_args()
    if unknown:
        words = [word.partition("=")[0] for word in unknown]
        # Anything that does not look like a misspelt option may be the value of one.
        names = [word for word in words if _NAME.fullmatch(word)]
        refuse(parser, f"not understood: {', '.join(names) or 'a word without an option'}")
    return arguments


def refuse(parser: argparse.ArgumentParser, text: str) -> NoReturn:
    """End the process with code 2 and this word about the command line."""
    parser.print_usage(sys.stderr)
    parser.exit(2, f"{parser.prog}: error: {text}\n")


def whole(typed: str) -> int:
    """Read a whole number from 1."""
    if not (typed.isascii() and typed.isdecimal() and 0 < len(typed) < 10 and int(typed) > 0):  # noqa: PLR2004 - nine digits are enough for anything
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return int(typed)


def seconds(typed: str) -> float:
    """Read a number of seconds, fractions allowed."""
    try:
        number = float(typed)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _LONGEST_PAUSE_S:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to {_LONGEST_PAUSE_S}")
    return number


def instant(typed: str) -> datetime:
    """Read an instant."""
    try:
        return parse_instant(typed)
    except (NotADateTimeError, MissingOffsetError) as error:
        raise argparse.ArgumentTypeError(
            "must be a date-time with an offset, such as 2026-01-31T09:30:00Z"
        ) from error


def text(typed: str) -> str:
    """Read a text that the database can be asked about."""
    try:
        typed.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError("must be valid UTF-8") from error
    if not typed:
        raise argparse.ArgumentTypeError("must not be empty")
    return typed
