"""The rules of request fields.

A rule judges the value as it came: whatever its type, and also when there is none. So a missing
text breaks every rule that only a text can keep, and the caller sees all of them. The attributes
carry the names by which marshmallow's own validators are known, ``min``, ``max``, ``choices``.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from marshmallow import ValidationError, missing
from marshmallow.validate import Validator

from notify_queue.api.job_id import is_uuid
from notify_queue.api.strict_json import walk
from notify_queue.domain.schedule import MissingOffsetError, NotADateTimeError, parse_instant

_NUL: Final = "\0"
# All of Unicode's control characters (category Cc) but NUL, which has a rule of its own.
_CONTROL: Final = re.compile(r"[\x01-\x1f\x7f-\x9f]")


class Rule(Validator):
    """One rule; ``text`` follows the name of the field in the message."""

    text: str

    def holds(self, value: Any) -> bool:
        """Whether the value keeps the rule."""
        raise NotImplementedError

    def __call__(self, value: Any) -> Any:
        """Return the value if it keeps the rule.

        Raises:
            ValidationError: it does not.
        """
        if not self.holds(value):
            raise ValidationError(self.text)
        return value


class IsString(Rule):
    """Text only."""

    text = "must be a string"

    def holds(self, value: Any) -> bool:
        """Whether the value is a text."""
        return isinstance(value, str)


class NotEmpty(Rule):
    """Something other than the empty text must be there; its type is another rule's business."""

    text = "should not be empty"

    def holds(self, value: Any) -> bool:
        """Whether there is a value."""
        return value is not missing and value is not None and value != ""


class MaxLength(Rule):
    """Text of at most ``max`` code points, which is how PostgreSQL counts."""

    min = None
    equal = None

    def __init__(self, limit: int) -> None:
        self.max = limit
        self.text = f"must be shorter than or equal to {limit} characters"

    def holds(self, value: Any) -> bool:
        """Whether the value is a text and short enough."""
        return isinstance(value, str) and len(value) <= self.max


class NoNul(Rule):
    """No U+0000 in the value, or in any key or text within it."""

    text = r"must not contain NUL (\u0000) characters"

    def holds(self, value: Any) -> bool:
        """Whether neither the value nor anything in it has a NUL."""
        return not any(isinstance(item, str) and _NUL in item for item, _ in walk(value))


class NoControlCharacters(Rule):
    """No line breaks and their like, which could end a provider's header early."""

    text = "must not contain control characters"

    def holds(self, value: Any) -> bool:
        """Whether the value, if it is a text, has no control character besides NUL."""
        return not (isinstance(value, str) and _CONTROL.search(value))


class OneOf(Rule):
    """One of some words, in exactly this spelling."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices
        self.text = f"must be one of the following values: {', '.join(choices)}"

    def holds(self, value: Any) -> bool:
        """Whether the value is one of the words."""
        return isinstance(value, str) and value in self.choices


class IsObject(Rule):
    """A JSON object."""

    text = "must be an object"

    def holds(self, value: Any) -> bool:
        """Whether the value is an object."""
        return isinstance(value, dict)


class IsUuid(Rule):
    """A UUID in full form."""

    text = "must be a UUID"

    def holds(self, value: Any) -> bool:
        """Whether the value spells a UUID."""
        return isinstance(value, str) and is_uuid(value)


class IsInstant(Rule):
    """A date-time, with an offset or without."""

    text = "must be a valid ISO 8601 date string"

    def holds(self, value: Any) -> bool:
        """Whether the value spells an instant, or one of some time zone."""
        try:
            return isinstance(value, str) and parse_instant(value) is not None
        except MissingOffsetError:
            return True
        except NotADateTimeError:
            return False


class IsInteger(Rule):
    """A JSON number without a fraction: 60.0 is 60."""

    text = "must be an integer number"

    def holds(self, value: Any) -> bool:
        """Whether the value is an integral number."""
        return is_number(value) and value % 1 == 0


class AtLeast(Rule):
    """A number not below ``min``."""

    max = None

    def __init__(self, limit: int) -> None:
        self.min = limit
        self.text = f"must not be less than {limit}"

    def holds(self, value: Any) -> bool:
        """Whether the value is a number and large enough."""
        return is_number(value) and value >= self.min


class AtMost(Rule):
    """A number not above ``max``."""

    min = None

    def __init__(self, limit: int) -> None:
        self.max = limit
        self.text = f"must not be greater than {limit}"

    def holds(self, value: Any) -> bool:
        """Whether the value is a number and small enough."""
        return is_number(value) and value <= self.max


def is_number(value: Any) -> bool:
    """Whether this is a JSON number; Python counts its booleans as integers, JSON does not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
