"""``/health``: whether this process can reach its database. Served by every role."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Response

from notify_queue.api.responses import json_response
from notify_queue.metrics.health import Health


def health(check: Callable[[], Health]) -> Blueprint:
    """Make the route on this check."""
    blueprint = Blueprint("health", __name__)

    @blueprint.get("/health")
    def read_health() -> Response:
        """Answer 200 when the database does, else 503."""
        found = check()
        if found.up:
            up = {"database": {"status": "up", "responseTime": found.response_time_ms}}
            return json_response(_body("ok", info=up, error={}, details=up), HTTPStatus.OK)
        down = {"database": {"status": "down", "message": "The database does not answer"}}
        return json_response(
            _body("error", info={}, error=down, details=down), HTTPStatus.SERVICE_UNAVAILABLE
        )

    return blueprint


def _body(status: str, **parts: dict[str, Any]) -> dict[str, Any]:
    return {"status": status, **parts}
