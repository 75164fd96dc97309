"""Foreign error text, made safe to store, to show and to log."""

import re
from typing import Final

MAX_LENGTH: Final = 500
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]+")


def clean_error(text: str, recipient: str) -> str:
    """Cut foreign text short, on one line, without characters a text column refuses.

    The recipient's address is taken out, since providers like to quote it. Recording an outcome
    must not depend on what a provider says (pitfall C4): any string is fine here.
    """
    # A megabyte is not searched for nothing, but what is cut off may have split the recipient: then
    # its first part stands at the very end, and goes too.
    short = text[: 4 * MAX_LENGTH]
    if recipient:
        short = short.replace(recipient, "[recipient]")
        if len(text) > 4 * MAX_LENGTH:
            short = short[: -len(recipient)]
    return _CONTROL.sub(" ", short).strip()[:MAX_LENGTH]
