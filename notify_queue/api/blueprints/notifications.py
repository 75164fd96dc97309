"""``/notifications``: schedule a notification, and see what became of it."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from uuid import UUID

from flask import Blueprint, Response, g

from notify_queue.api.job_id import decode_job_id
from notify_queue.api.responses import json_response
from notify_queue.api.schemas.base import read
from notify_queue.api.schemas.notification import NotificationSchema, ScheduleNotificationSchema
from notify_queue.domain.errors import NotFoundError
from notify_queue.domain.job import Job, NotificationRequest
from notify_queue.notifications.schedule import Scheduled

_REQUEST: Final = ScheduleNotificationSchema()
_NOTIFICATION: Final = NotificationSchema()


def notifications(
    schedule: Callable[[NotificationRequest], Scheduled], read_one: Callable[[UUID], Job]
) -> Blueprint:
    """Make the routes on these use cases."""
    blueprint = Blueprint("notifications", __name__)

    @blueprint.post("/notifications")
    def schedule_notification() -> Response:
        """Schedule once for each idempotency key: 201 for a new job, 200 for a known one."""
        scheduled = schedule(read(_REQUEST, g.body))
        status = HTTPStatus.OK if scheduled.replayed else HTTPStatus.CREATED
        response = json_response(_NOTIFICATION.dump(scheduled.job), status)
        response.headers["Idempotent-Replayed"] = "true" if scheduled.replayed else "false"
        return response

    @blueprint.get("/notifications/<segment>")
    def read_notification(segment: str) -> Response:
        """Show one job as it is now."""
        given = decode_job_id(segment)
        try:
            job = read_one(UUID(given))
        except NotFoundError as error:
            # The answer names the id as the caller spelled it.
            raise NotFoundError(given) from error
        return json_response(_NOTIFICATION.dump(job), HTTPStatus.OK)

    return blueprint
