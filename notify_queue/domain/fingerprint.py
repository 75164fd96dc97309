"""The fingerprint of a request: all that the caller said, and nothing the server made up.

Two requests under one idempotency key are the same when their fingerprints agree. Spelling does
not count: the order of keys, ``1`` or ``1.0``, one instant in two offsets. Meaning does: a delay
and an instant that would fall together are two requests, because a replay minutes later tells
them apart.
"""

import json
from datetime import datetime
from hashlib import sha256
from typing import Any

from notify_queue.domain.job import NotificationRequest


def fingerprint(request: NotificationRequest) -> str:
    """SHA-256, in lower-case hex, of the canonical JSON of a request without its key."""
    said: dict[str, Any] = {
        "recipient": request.recipient,
        "channel": request.channel.value,
        "payload": _canonical(request.payload),
        "priority": request.priority.name,
    }
    if request.send_at is not None:
        said["sendAt"] = _instant(request.send_at)
    else:
        said["delaySeconds"] = request.delay_seconds
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Make equal JSON numbers equal in print; depth is bounded where the body is read."""
    match value:
        case dict():
            return {key: _canonical(item) for key, item in value.items()}
        case list():
            return [_canonical(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _instant(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
