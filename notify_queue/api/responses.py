"""JSON answers."""

import json
from http import HTTPStatus
from typing import Any

from flask import Response


def json_response(body: dict[str, Any], status: HTTPStatus) -> Response:
    """Make an answer; its keys keep their order."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, content_type="application/json; charset=utf-8")
