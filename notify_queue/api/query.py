"""The query string of a request, and the numbers in it."""

import math
import re
from typing import Final
from urllib.parse import parse_qsl

Query = dict[str, str | list[str]]

_DECIMAL: Final = re.compile(
    r"[+-]?(?:Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_PREFIXED: Final = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
# What JavaScript takes for space: Python's idea of it differs in a few control characters.
_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def parse_query(sent: bytes) -> Query:
    """Read a query string, in its order; a parameter that is repeated becomes a list.

    Bytes that are not UTF-8 become U+FFFD, whether they came percent-encoded or as they are.
    """
    query: Query = {}
    text = sent.decode(errors="replace")
    for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
        match query.get(name):
            case None:
                query[name] = value
            case str(first):
                query[name] = [first, value]
            case several:
                several.append(value)
    return query


def parse_number(text: str) -> float:
    """Read a number as JavaScript's ``Number`` does: no text is 0, no number is NaN."""
    bare = text.strip(_SPACE)
    if not bare:
        return 0
    if _PREFIXED.fullmatch(bare):
        return int(bare, 0)
    return float(bare) if _DECIMAL.fullmatch(bare) else math.nan
