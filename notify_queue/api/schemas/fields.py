"""The kinds of fields that the API reads and shows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from marshmallow import ValidationError, fields, missing

from notify_queue.api.query import parse_number
from notify_queue.api.schemas.rules import (
    AtLeast,
    AtMost,
    IsInstant,
    IsInteger,
    IsObject,
    IsString,
    IsUuid,
    MaxLength,
    NoControlCharacters,
    NoNul,
    NotEmpty,
    OneOf,
    Rule,
)
from notify_queue.domain.schedule import (
    MissingOffsetError,
    NotADateTimeError,
    parse_instant,
    spell_instant,
)

_MAX_RECIPIENT: Final = 320
# Far above what a cursor of ours has, so that another form of it stays possible.
_MAX_CURSOR: Final = 512


class RuledField(fields.Field[Any]):
    """A field whose rules are all checked on the value as it came, the last declared one first.

    An optional field takes null for absent, and is ``load_default`` then.
    """

    def __init__(self, *rules: Rule, required: bool = True, load_default: Any = missing) -> None:
        super().__init__(required=required, load_default=load_default, validate=rules)
        self.rules = rules

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,  # noqa: ARG002 - the base class hands it over
        **_: Any,
    ) -> Any:
        """Return the value if it keeps every rule, or the default if it may be and is absent."""
        if not self.required and (value is None or value is missing):
            return self.load_default
        broken = [f"{attr} {rule.text}" for rule in reversed(self.rules) if not rule.holds(value)]
        if broken:
            raise ValidationError(broken)
        return value


class Text(RuledField, fields.String):
    """A line of text that can be stored and sent as it is."""

    def __init__(self, max_length: int, *, required: bool = True) -> None:
        super().__init__(
            IsString(),
            NotEmpty(),
            MaxLength(max_length),
            NoNul(),
            NoControlCharacters(),
            required=required,
        )


class Recipient(Text):
    """Whom a notification is for. What nobody can be is refused in a filter as well."""

    def __init__(self, *, required: bool = True) -> None:
        super().__init__(_MAX_RECIPIENT, required=required)


class Cursor(RuledField, fields.String):
    """A text, or none, that may be a cursor. Whether it is one, the listing finds out."""

    def __init__(self) -> None:
        super().__init__(IsString(), MaxLength(_MAX_CURSOR), required=False)


class Choice(RuledField, fields.String):
    """One of some words."""

    def __init__(
        self, choices: Sequence[str], *, required: bool = True, load_default: Any = missing
    ) -> None:
        super().__init__(OneOf(choices), required=required, load_default=load_default)


class JsonObject(RuledField, fields.Dict):
    """Any JSON object that a jsonb column can hold."""

    def __init__(self) -> None:
        super().__init__(IsObject(), NoNul())


class Identifier(RuledField, fields.String):
    """A UUID."""

    def __init__(self) -> None:
        super().__init__(IsUuid())


class AnyInstant(RuledField, fields.String):
    """A date-time that is only looked at."""

    def __init__(self) -> None:
        super().__init__(IsInstant())


class Count(RuledField, fields.Integer):
    """How many, from zero."""

    def __init__(self, *, required: bool = True) -> None:
        super().__init__(IsInteger(), AtLeast(0), required=required)


class OptionalInteger(RuledField, fields.Integer):
    """An integer within bounds, or none."""

    def __init__(self, at_least: int, at_most: int, *, load_default: Any = missing) -> None:
        super().__init__(
            IsInteger(),
            AtLeast(at_least),
            AtMost(at_most),
            required=False,
            load_default=load_default,
        )

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the number as an integer, however it was written."""
        number = super().deserialize(value, attr, data, **kwargs)
        return number if number is missing else int(number)


class QueryInteger(OptionalInteger):
    """The same in a query, where a number is a text."""

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the number as an integer, however it was written."""
        number = parse_number(value) if isinstance(value, str) else value
        return super().deserialize(number, attr, data, **kwargs)


class SendAt(fields.DateTime):
    """An instant, unless the field ``delaySeconds`` is given; first broken rule only."""

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,  # noqa: ARG002 - the base class hands it over
        data: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        """Return the instant, or ``missing`` when a delay stands in its place."""
        if not _one_schedule(data or {}):
            raise ValidationError("Provide exactly one of sendAt or delaySeconds")
        return missing if value is missing else self._instant(value)

    def _instant(self, value: Any) -> datetime:
        try:
            if isinstance(value, str):
                return parse_instant(value)
        except MissingOffsetError as error:
            raise ValidationError("sendAt must include a timezone offset (Z or ±HH:MM)") from error
        except NotADateTimeError:
            pass
        raise ValidationError("sendAt must be a valid ISO 8601 date-time")


def _one_schedule(body: Mapping[str, Any]) -> bool:
    """Null counts as given, but a null delay alone is no schedule."""
    if "sendAt" in body:
        return "delaySeconds" not in body
    return body.get("delaySeconds") is not None


class Instant(fields.DateTime):
    """A stored time as shown: UTC, three fraction digits, cut and not rounded."""

    def _serialize(
        self,
        value: datetime | None,
        attr: Any,  # noqa: ARG002 - the base class hands it over
        obj: Any,  # noqa: ARG002 - as above
        **_: Any,
    ) -> str | None:
        return None if value is None else spell_instant(value)
