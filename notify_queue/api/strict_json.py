"""Strict JSON: what every reader of it understands in the same way, and nothing else.

Refused are the tokens NaN and Infinity, numbers that no 64-bit number can hold, a key given twice
in one object, unpaired surrogates, and nesting deeper than ``MAX_DEPTH``. No refusal quotes the
text it is about.
"""

import json
import math
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final, NoReturn

from notify_queue.api.refusals import RequestRefusedError

# The object itself is level 1. Far above what a notification needs, and far below the depth at
# which the recursive readers further on (fingerprint, database driver) would give up.
MAX_DEPTH: Final = 64
_MAX_INTEGER: Final = 2**63 - 1
_MIN_INTEGER: Final = -(2**63)
# A sign and nineteen digits. Python refuses to convert very long numbers, so these are not tried.
_MAX_INTEGER_LENGTH: Final = 20
_SURROGATES: Final = ("\ud800", "\udfff")


def parse_object(text: str) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        RequestRefusedError: the text is not JSON, not strict JSON, or not an object.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _refusal("Malformed JSON body") from error
    except RecursionError as error:
        raise _too_deep() from error
    if not isinstance(value, dict):
        raise _refusal("JSON body must be an object")
    for item, depth in walk(value):
        _check(item, depth)
    return value


def walk(value: Any) -> Iterator[tuple[Any, int]]:
    """Yield every key and value within a JSON value and itself, each with its level from 1.

    Works without recursion, so that no depth of nesting can exhaust the stack.
    """
    pending = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        yield item, depth
        match item:
            case dict():
                pending.extend((key, depth + 1) for key in item)
                pending.extend((child, depth + 1) for child in item.values())
            case list():
                pending.extend((child, depth + 1) for child in item)


def _check(item: Any, depth: int) -> None:
    if isinstance(item, dict | list) and depth > MAX_DEPTH:
        raise _too_deep()
    if isinstance(item, str) and _has_surrogate(item):
        raise _refusal("JSON body must not contain unpaired surrogates")


def _has_surrogate(text: str) -> bool:
    first, last = _SURROGATES
    return not text.isascii() and any(first <= character <= last for character in text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _refusal("JSON body must not repeat a key within one object")
    return members


def _integer(text: str) -> int:
    if len(text) <= _MAX_INTEGER_LENGTH:
        number = int(text)
        if _MIN_INTEGER <= number <= _MAX_INTEGER:
            return number
    raise _refusal("JSON body must not contain an integer beyond 64 bits")


def _real(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _refusal("JSON body must not contain a number beyond double precision")
    return number


def _constant(_: str) -> NoReturn:
    raise _refusal("JSON body must not contain NaN or Infinity")


def _too_deep() -> RequestRefusedError:
    return _refusal(f"JSON body must not be nested deeper than {MAX_DEPTH} levels")


def _refusal(message: str) -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.BAD_REQUEST, message)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
