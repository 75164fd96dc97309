"""What all schemas share: names in camel case, and every broken rule told at once."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from marshmallow import Schema, ValidationError, fields

from notify_queue.api.refusals import FieldError, RequestRefusedError


class CamelCaseSchema(Schema):
    """Spells the names of its fields in camel case outside."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Give a field the name that the JSON carries."""
        first, *others = field_name.split("_")
        field_obj.data_key = first + "".join(word.capitalize() for word in others)


def read(schema: Schema, sent: Mapping[str, Any]) -> Any:
    """Load the body or the query of a request.

    Raises:
        RequestRefusedError: 400 with all broken rules: of properties that do not exist in the
            order they were sent in, then of fields in the order of the schema.
    """
    try:
        return schema.load(sent)
    except ValidationError as error:
        broken = error.messages_dict
    known = {field.data_key for field in schema.load_fields.values()}
    unknown = [
        FieldError(name, [f"property {name} should not exist"])
        for name in sent
        if name not in known
    ]
    declared = [FieldError(name, errors) for name, errors in broken.items() if name in known]
    raise RequestRefusedError(HTTPStatus.BAD_REQUEST, "Validation failed", unknown + declared)
