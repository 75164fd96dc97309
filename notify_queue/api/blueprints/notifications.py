"""``/notifications``: schedule, look, cancel what waits, put back to work what ended badly."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from uuid import UUID

from flask import Blueprint, Response, g, request

from notify_queue.api.job_id import decode_job_id
from notify_queue.api.query import parse_query
from notify_queue.api.responses import json_response
from notify_queue.api.schemas.base import read
from notify_queue.api.schemas.notification import NotificationSchema, ScheduleNotificationSchema
from notify_queue.api.schemas.paging import ListQuerySchema, NotificationPageSchema
from notify_queue.api.schemas.redrive import NoQuerySchema, RedriveManySchema, RedriveResultSchema
from notify_queue.domain.errors import NotCancellableError, NotFoundError, NotRedrivableError
from notify_queue.domain.job import Job, NotificationRequest
from notify_queue.domain.page import Filter, Page
from notify_queue.domain.redrive import Selection
from notify_queue.notifications.redrive import Redriven
from notify_queue.notifications.schedule import Scheduled

_REQUEST: Final = ScheduleNotificationSchema()
_NOTIFICATION: Final = NotificationSchema()
_LIST_QUERY: Final = ListQuerySchema()
_PAGE: Final = NotificationPageSchema()
_NO_QUERY: Final = NoQuerySchema()
_REDRIVE_MANY: Final = RedriveManySchema()
_REDRIVE_RESULT: Final = RedriveResultSchema()


@dataclass(frozen=True)
class NotificationUseCases:
    """What can be asked for of notifications."""

    schedule: Callable[[NotificationRequest], Scheduled]
    read: Callable[[UUID], Job]
    list_page: Callable[[Filter, int, str | None], Page]
    cancel: Callable[[UUID], Job]
    redrive_one: Callable[[UUID], Job]
    redrive_many: Callable[[Selection, int], Redriven]


def notifications(use_cases: NotificationUseCases) -> Blueprint:
    """Make the routes on these use cases."""
    blueprint = Blueprint("notifications", __name__)

    @blueprint.post("/notifications")
    def schedule_notification() -> Response:
        """Schedule once for each idempotency key: 201 for a new job, 200 for a known one."""
        scheduled = use_cases.schedule(read(_REQUEST, g.body))
        status = HTTPStatus.OK if scheduled.replayed else HTTPStatus.CREATED
        response = json_response(_NOTIFICATION.dump(scheduled.job), status)
        response.headers["Idempotent-Replayed"] = "true" if scheduled.replayed else "false"
        return response

    @blueprint.get("/notifications")
    def list_notifications() -> Response:
        """Show a page of jobs, newest first."""
        query = read(_LIST_QUERY, parse_query(request.query_string))
        page = use_cases.list_page(query.wanted, query.limit, query.cursor)
        return json_response(_PAGE.dump(page), HTTPStatus.OK)

    @blueprint.post("/notifications/retry")
    def redrive_notifications() -> Response:
        """Put many jobs that have ended badly back to work, oldest first."""
        read(_NO_QUERY, parse_query(request.query_string))
        order = read(_REDRIVE_MANY, g.body)
        redriven = use_cases.redrive_many(order.selection, order.limit)
        return json_response(_REDRIVE_RESULT.dump(redriven), HTTPStatus.OK)

    @blueprint.get("/notifications/<segment>")
    def read_notification(segment: str) -> Response:
        """Show one job as it is now."""
        return _answer_by_id(use_cases.read, segment)

    @blueprint.delete("/notifications/<segment>")
    def cancel_notification(segment: str) -> Response:
        """Cancel one job that waits, and show it as it was cancelled."""
        return _answer_by_id(use_cases.cancel, segment)

    @blueprint.post("/notifications/<segment>/retry")
    def redrive_notification(segment: str) -> Response:
        """Put one job that has ended badly back to work, and show it as it was put back."""
        return _answer_by_id(use_cases.redrive_one, segment)

    return blueprint


def _answer_by_id(use_case: Callable[[UUID], Job], segment: str) -> Response:
    """Show the job that a use case returns; a refusal names the id as the caller spelled it."""
    given = decode_job_id(segment)
    try:
        job = use_case(UUID(given))
    except NotFoundError as error:
        raise NotFoundError(given) from error
    except (NotCancellableError, NotRedrivableError) as error:
        raise type(error)(given, error.status) from error
    return json_response(_NOTIFICATION.dump(job), HTTPStatus.OK)
