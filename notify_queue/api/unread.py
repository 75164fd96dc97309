"""The answer to bytes that the web server could not read as a request.

They never reach the application, so this answer is written by hand, in the shape of all others.
"""

import json
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from notify_queue.api.refusals import phrase
from notify_queue.api.request_id import HEADER
from notify_queue.api.security import SECURITY_HEADERS
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error

_LOG: Final = get_logger("http")
_MESSAGE: Final = "The request could not be read as HTTP"


def refuse_unread(error: BaseException, status: HTTPStatus) -> bytes:
    """Log what kind of fault it was, and return a whole HTTP/1.1 answer that ends the connection.

    Nothing of the request is repeated: it was not understood, so nobody knows what is in it.
    """
    request_id = str(uuid4())
    _LOG.warn(
        events.HTTP_UNREAD,
        requestId=request_id,
        res={"statusCode": status.value},
        error=describe_error(error),
    )
    body = json.dumps(
        {
            "statusCode": status.value,
            "error": phrase(status),
            "message": _MESSAGE,
            "path": "",
            "requestId": request_id,
        },
        separators=(",", ":"),
    )
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Content-Length": str(len(body)),
        "Connection": "close",
        HEADER: request_id,
        **SECURITY_HEADERS,
    }
    lines = [f"HTTP/1.1 {status.value} {phrase(status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("ascii")
