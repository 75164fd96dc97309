"""The one shape of every error answer."""

from marshmallow import fields

from notify_queue.api.schemas.base import CamelCaseSchema


class FieldErrorSchema(CamelCaseSchema):
    """All broken rules of one field."""

    field = fields.String()
    errors = fields.List(fields.String())


class ErrorSchema(CamelCaseSchema):
    """An error; ``details`` only where fields can be named, ``path`` without the query string."""

    status_code = fields.Integer()
    error = fields.String()
    message = fields.String()
    details = fields.List(fields.Nested(FieldErrorSchema))
    path = fields.String()
    request_id = fields.String()
