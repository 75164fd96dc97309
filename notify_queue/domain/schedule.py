"""When a notification may be asked for.

The accepted spelling of an instant is ``YYYY-MM-DDTHH:MM[:SS[.f+]]`` and then ``Z`` or ``±HH:MM``:
RFC 3339 with optional seconds. Everything else is refused here, before the database could give it
a meaning of its own (PostgreSQL moves second 60 into the next minute).
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

HORIZON_DAYS: Final = 365
MAX_DELAY_SECONDS: Final = HORIZON_DAYS * 24 * 60 * 60

# Looser than what is accepted: an offset in another spelling deserves the answer "offset", not
# "no date-time".
_SHAPE: Final = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:T(?P<time>\d{2}:\d{2}(?::\d{2}(?:\.(?P<fraction>\d+))?)?)"
    r"(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_OFFSET: Final = re.compile(r"Z|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):(?P<minutes>[0-5]\d)")


class NotADateTimeError(ValueError):
    """The text is no date-time, or one that the calendar does not have."""


class MissingOffsetError(ValueError):
    """The text names a wall-clock time, which is no instant."""


def parse_instant(text: str) -> datetime:
    """Read one instant, in UTC, cut to milliseconds.

    Raises:
        NotADateTimeError: another form, or no such date, time or offset.
        MissingOffsetError: a date or date-time without an offset in the accepted spelling.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise NotADateTimeError
    try:
        day = date.fromisoformat(shape["date"])
        clock = time.fromisoformat((shape["time"] or "00:00").partition(".")[0])
    except ValueError as error:
        raise NotADateTimeError from error
    if not shape["offset"] or shape["offset"][0] == "z":
        raise MissingOffsetError
    local = datetime.combine(day, clock, tzinfo=UTC) + _milliseconds(shape["fraction"])
    try:
        return local - _offset(shape["offset"])
    except OverflowError as error:
        raise NotADateTimeError from error


def spell_instant(moment: datetime) -> str:
    """Write an instant as everybody outside sees it: UTC, three digits of a second, cut."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"


def _milliseconds(fraction: str | None) -> timedelta:
    """Cut, not rounded: a rounded instant could be another one."""
    return timedelta(milliseconds=int((fraction or "0")[:3].ljust(3, "0")))


def _offset(text: str) -> timedelta:
    if len(text) in {3, 5}:
        raise MissingOffsetError
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        raise NotADateTimeError
    if text == "Z":
        return timedelta()
    distance = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"]))
    return -distance if offset["sign"] == "-" else distance


def within_horizon(send_at: datetime, now: datetime) -> bool:
    """Whether an instant is at most ``HORIZON_DAYS`` ahead. The past is always within it."""
    return send_at - now <= timedelta(days=HORIZON_DAYS)
