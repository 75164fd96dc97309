"""The schemas of a listing: what is to be shown, and a page of it."""

from dataclasses import dataclass
from typing import Any, Final

from marshmallow import fields, post_load

from notify_queue.api.schemas.base import CamelCaseSchema
from notify_queue.api.schemas.fields import Choice, Cursor, QueryInteger, Recipient
from notify_queue.api.schemas.notification import NotificationSchema
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.page import Filter

_DEFAULT_LIMIT: Final = 20
_MAX_LIMIT: Final = 100


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which page is wanted: up to ``limit`` jobs from behind ``cursor``, or from the newest."""

    wanted: Filter
    limit: int
    cursor: str | None


class ListQuerySchema(CamelCaseSchema):
    """The query of ``GET /notifications``. The order of the fields is that of the messages."""

    status = Choice(list(Status), required=False)
    recipient = Recipient(required=False)
    limit = QueryInteger(1, _MAX_LIMIT, load_default=_DEFAULT_LIMIT)
    cursor = Cursor()

    @post_load
    def build(self, data: dict[str, Any], **_: Any) -> ListQuery:
        """Make the query that the listing understands."""
        status = Status(data["status"]) if "status" in data else None
        wanted = Filter(status, data.get("recipient"))
        return ListQuery(wanted, data["limit"], data.get("cursor"))


class NotificationPageSchema(CamelCaseSchema):
    """A page; ``nextCursor`` is null on the last one."""

    items = fields.List(fields.Nested(NotificationSchema))
    next_cursor = fields.String(allow_none=True)
