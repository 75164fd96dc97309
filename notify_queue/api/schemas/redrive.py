"""The schemas of a redrive of many: which jobs, and what it came to."""

from dataclasses import dataclass
from typing import Any, Final

from marshmallow import fields, post_load

from notify_queue.api.schemas.base import CamelCaseSchema
from notify_queue.api.schemas.fields import Choice, OptionalInteger, Recipient
from notify_queue.domain.lifecycle import REDRIVABLE, Status
from notify_queue.domain.redrive import Selection

_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class RedriveMany:
    """Put back up to ``limit`` of the selected jobs."""

    selection: Selection
    limit: int


class NoQuerySchema(CamelCaseSchema):
    """The query of ``POST /notifications/retry``: none.

    What is to be redriven stands in the body. A filter in the wrong place, passed over, would
    redrive what nobody asked for.
    """


class RedriveManySchema(CamelCaseSchema):
    """The body of ``POST /notifications/retry``. The order is that of the messages."""

    status = Choice(sorted(REDRIVABLE), required=False, load_default=Status.DEAD_LETTERED.value)
    recipient = Recipient(required=False)
    limit = OptionalInteger(1, _MAX_LIMIT, load_default=_DEFAULT_LIMIT)

    @post_load
    def build(self, data: dict[str, Any], **_: Any) -> RedriveMany:
        """Make the order that the queue understands."""
        selection = Selection(Status(data["status"]), data.get("recipient"))
        return RedriveMany(selection, data["limit"])


class RedriveResultSchema(CamelCaseSchema):
    """What came of it, in jobs."""

    retried = fields.Integer()
    remaining = fields.Integer()
