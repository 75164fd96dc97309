"""The request target: as the client sent it, as it is routed, and as it may be logged."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from notify_queue.api.job_id import is_uuid

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?]*", re.IGNORECASE)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
_PATH_CHARACTERS: Final = "/!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked for, still percent-encoded; ``url`` keeps the query string."""

    url: str
    path: str


def target_of(environ: Mapping[str, Any]) -> Target:
    """Find the target in a WSGI environment.

    Servers that keep the raw request line are believed; for others the path is encoded again.
    """
    raw = environ.get("RAW_URI")
    if raw is None:
        raw = quote(environ["PATH_INFO"], safe=_PATH_CHARACTERS, encoding="latin-1")
        raw += f"?{query}" if (query := environ.get("QUERY_STRING")) else ""
    # WSGI carries bytes as if they were Latin-1.
    sent = raw.encode("latin-1").decode(errors="replace")
    url = _ORIGIN.sub("", sent, count=1) if _ORIGIN.match(sent) else sent
    path = url.partition("?")[0] or "/"
    return Target(url=url or "/", path=path)


def exact(path: str) -> str:
    """Protect a path from the router's own leniency, which would merge its slashes.

    No route has an empty segment, and none begins with a slash that is encoded.
    """
    return f"/%2F{path}" if "//" in path else path


def folded(path: str, literals: frozenset[str]) -> str:
    """Spell a path as its route does: literal segments in lower case, no trailing slash.

    All other segments stay as they are, since an id is reported as it was given.
    """
    segments = [_fold(segment, literals) for segment in path.split("/")]
    if len(segments) > 2 and not segments[-1]:  # noqa: PLR2004 - "/" alone splits into two
        segments.pop()
    return exact("/".join(segments))


def _fold(segment: str, literals: frozenset[str]) -> str:
    lower = segment.lower()
    return lower if lower in literals else segment


def loggable_method(method: str) -> str:
    """Show a method that exists; any other is a word of the caller's."""
    return method if method in _METHODS else ":value"


def loggable(path: str, literals: frozenset[str]) -> str:
    """Show only the segments that cannot carry a caller's data: route words and UUIDs."""
    return "/".join(
        segment if not segment or segment.lower() in literals or is_uuid(segment) else ":value"
        for segment in path.split("/")
    )
