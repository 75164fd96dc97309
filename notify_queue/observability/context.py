"""What the lines of one request have in common.

The binding belongs to the greenlet that made it: a new greenlet starts with none.
"""

from structlog.contextvars import bind_contextvars, unbind_contextvars


def bind_request_id(request_id: str) -> None:
    """Write this id as ``requestId`` on every line until it is cleared."""
    bind_contextvars(requestId=request_id)


def clear_request_id() -> None:
    """Forget the id; a server may use the same greenlet for the next request."""
    unbind_contextvars("requestId")
