"""How long a receiver asks us to stay away: the header Retry-After (RFC 9110, section 10.2.3)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

# Nobody is believed who wants more.
LONGEST_S: Final = 60 * 60
_SECONDS: Final = re.compile(r"[0-9]+", re.ASCII)
_TOO_MANY_DIGITS: Final = 10


def retry_after_s(value: str | None, date: str | None, now: datetime) -> int:
    """Read the header's value: how many seconds to wait, from 0 to an hour.

    An instant is compared with the answer's own ``date``, so that clocks need not agree, and with
    ``now`` when that is missing. What cannot be read asks for nothing.
    """
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        digits = text.lstrip("0") or "0"
        return LONGEST_S if len(digits) >= _TOO_MANY_DIGITS else min(int(digits), LONGEST_S)
    at = _instant(text)
    if at is None:
        return 0
    wait = at - (_instant(date or "") or now)
    return min(max(round(wait.total_seconds()), 0), LONGEST_S)


def _instant(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    # The form that names no zone, of asctime, means UTC too.
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at
