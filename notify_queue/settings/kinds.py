"""What a setting's text may look like, and the value it becomes.

Every refusal names the broken rule and never the value: a password pasted into the wrong variable
must not end in a log. A kind also says its rule in words, for the documents.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from marshmallow import ValidationError

from notify_queue.domain.signature import decode_secret

_WHOLE: Final = re.compile(r"-?[0-9]+")
_MOST_SECRETS: Final = 2
_DECIMAL: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class Kind(Protocol):
    """One form of setting."""

    @property
    def rule(self) -> str:
        """The accepted values, in words."""

    def read(self, text: str) -> object:
        """Turn text into a value, or raise ``ValidationError`` naming the broken rule."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A plain decimal integer within bounds, both included."""

    least: int
    most: int

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return f"integer, {self.least} to {self.most}"

    def read(self, text: str) -> int:
        """Read digits; ``int()`` alone would also take ``1_000`` and other scripts' digits."""
        number = text.strip(" ")
        if _WHOLE.fullmatch(number) is None:
            raise ValidationError("must be an integer number")
        return int(_within(number, self.least, self.most))


@dataclass(frozen=True, slots=True)
class Fraction:
    """A plain decimal number within bounds, both included."""

    least: float
    most: float

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return f"number, {self.least:g} to {self.most:g}"

    def read(self, text: str) -> float:
        """Read a number such as ``0.2``; no exponent, no infinity."""
        number = text.strip(" ")
        if _DECIMAL.fullmatch(number) is None:
            raise ValidationError("must be a decimal number")
        return float(_within(number, self.least, self.most))


def _within(number: str, least: float, most: float) -> Decimal:
    """Compare as Decimal: ``int()`` refuses very many digits with an error of its own."""
    value = Decimal(number)
    if value < least:
        raise ValidationError(f"must not be less than {least:.15g}")
    if value > most:
        raise ValidationError(f"must not be greater than {most:.15g}")
    return value


@dataclass(frozen=True, slots=True)
class OneOf:
    """One word of a short list."""

    words: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return ", ".join(f"`{word}`" for word in self.words)

    def read(self, text: str) -> str:
        """Accept a listed word, spelled exactly so."""
        if text not in self.words:
            raise ValidationError(f"must be one of the following values: {', '.join(self.words)}")
        return text


@dataclass(frozen=True, slots=True)
class Label:
    """A short name of printable ASCII characters."""

    most: int

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return f"at most {self.most} printable ASCII characters"

    def read(self, text: str) -> str:
        """Accept what fits its column and prints on one line."""
        if len(text) > self.most:
            raise ValidationError(f"must be at most {self.most} characters long")
        if not (text.isascii() and text.isprintable()):
            raise ValidationError("must contain only printable ASCII characters")
        return text


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return "`true`, `false`"

    def read(self, text: str) -> bool:
        """Accept the two words, in lower case."""
        if text not in {"true", "false"}:
            raise ValidationError("must be one of the following values: true, false")
        return text == "true"


@dataclass(frozen=True, slots=True)
class Secrets:
    """One signing secret, or two while one follows the other."""

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return "`whsec_` and 24 to 64 bytes in base64; two of them with a space between"

    def read(self, text: str) -> tuple[bytes, ...]:
        """Decode what each begins with ``whsec_``."""
        secrets = text.split()
        if not 1 <= len(secrets) <= _MOST_SECRETS:
            raise ValidationError("must be one secret, or two with a space between")
        try:
            return tuple(decode_secret(secret) for secret in secrets)
        except ValueError:
            # Nothing of what was given may become part of the error.
            problem = ValidationError("must be whsec_ and 24 to 64 bytes in base64")
        raise problem
