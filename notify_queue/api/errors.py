"""From what was refused, or went wrong, to the one shape of an error answer."""

from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, request
from werkzeug.exceptions import MethodNotAllowed, NotFound

from notify_queue.api.refusals import FieldError, RequestRefusedError, phrase
from notify_queue.api.request_id import request_id
from notify_queue.api.responses import json_response
from notify_queue.api.schemas.error import ErrorSchema
from notify_queue.api.target import target_of
from notify_queue.domain.errors import (
    BadSignatureError,
    InvalidCursorError,
    KeyReusedError,
    NotCancellableError,
    NotFoundError,
    NotRedrivableError,
    ScheduleTooFarError,
)

_STATUSES: Final = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    KeyReusedError: HTTPStatus.CONFLICT,
    NotCancellableError: HTTPStatus.CONFLICT,
    NotRedrivableError: HTTPStatus.CONFLICT,
    ScheduleTooFarError: HTTPStatus.BAD_REQUEST,
    InvalidCursorError: HTTPStatus.BAD_REQUEST,
    BadSignatureError: HTTPStatus.UNAUTHORIZED,
}
_ERROR: Final = ErrorSchema()


def register(app: Flask, *, worker: bool, report: Callable[[Exception], None]) -> None:
    """Answer every error in one shape; ``report`` is told of those that nobody expected."""
    for kind, status in _STATUSES.items():
        app.register_error_handler(kind, partial(_use_case_refused, status))
    app.register_error_handler(RequestRefusedError, _request_refused)
    app.register_error_handler(NotFound, _not_served if worker else _no_route)
    app.register_error_handler(MethodNotAllowed, _wrong_method)
    app.register_error_handler(Exception, partial(_unexpected, report))


def _use_case_refused(status: HTTPStatus, error: Exception) -> Response:
    return _answer(status, str(error))


def _request_refused(error: RequestRefusedError) -> Response:
    return _answer(error.status, str(error), error.details)


def _no_route(_: NotFound) -> Response:
    return _answer(HTTPStatus.NOT_FOUND, _cannot())


def _not_served(_: NotFound) -> Response:
    path = target_of(request.environ).path
    return _answer(
        HTTPStatus.NOT_FOUND,
        f"{path} is not served by a worker instance (APP_ROLE=worker); "
        "send API requests to an API instance",
    )


def _wrong_method(error: MethodNotAllowed) -> Response:
    response = _answer(HTTPStatus.METHOD_NOT_ALLOWED, _cannot())
    response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
    return response


def _unexpected(report: Callable[[Exception], None], error: Exception) -> Response:
    report(error)
    return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, "An unexpected error occurred")


def _cannot() -> str:
    return f"Cannot {request.method} {target_of(request.environ).url}"


def _answer(status: HTTPStatus, message: str, details: Sequence[FieldError] = ()) -> Response:
    error = {
        "status_code": status,
        "error": phrase(status),
        "message": message,
        "path": target_of(request.environ).path,
        "request_id": request_id(),
    }
    if details:
        error["details"] = details
    return json_response(_ERROR.dump(error), status)
