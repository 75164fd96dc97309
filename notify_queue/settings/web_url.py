"""The address of a web server that is called from here: one accepted form, one masked form."""

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

from marshmallow import ValidationError

from notify_queue.domain.addresses import is_public

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<userinfo>[^/?#@]*@)?"
    r"(?P<host>\[[^\[\]/?#@]*\]|[^/?#@:\[\]]*)(?::(?P<port>[^/?#@\]]*))?(?P<rest>[/?].*)?",
    re.ASCII | re.IGNORECASE,
)
_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?", re.ASCII)
# What may stand in a path or a query; a fragment would never be sent.
_REST: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_LONGEST: Final = 2048
_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class WebUrl:
    """``http://host:port/path?query`` or https, without a user or a password."""

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return "URL, `https://host/path` or `http://host/path`"

    def read(self, text: str) -> str:
        """Return the URL as it is, if it is one that can be called."""
        url = _URL.fullmatch(text)
        if url is None:
            raise ValidationError("must be a URL that begins with http:// or https://")
        if len(text) > _LONGEST:
            raise ValidationError(f"must be at most {_LONGEST} characters long")
        if url["userinfo"] is not None:
            raise ValidationError("must not contain a user name or a password")
        if not _is_host(url["host"]):
            raise ValidationError("must have a host: a name, punycode if need be, or an address")
        if url["port"] is not None and not _is_port(url["port"]):
            raise ValidationError(f"must have a port from 1 to {_MAX_PORT}, or none")
        if not _REST.fullmatch(url["rest"] or ""):
            raise ValidationError(
                "must have special characters percent-encoded, and no part after a #"
            )
        path = (url["rest"] or "").partition("?")[0]
        # Who sends it would take them out.
        if not {".", ".."}.isdisjoint(path.split("/")):
            raise ValidationError("must have no part of its path that is . or ..")
        return text


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            return bool(IPv6Address(host[1:-1])) and "%" not in host
        except ValueError:
            return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _LONGEST_NAME and all(
        _NAME.fullmatch(label) and len(label) <= _LONGEST_LABEL for label in labels
    )


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) is not None and 1 <= int(text) <= _MAX_PORT


def origin_of(url: str | None) -> str:
    """Show where a URL leads; its path and query may be a secret. Nothing for none."""
    parts = None if url is None else _URL.fullmatch(url)
    if parts is None:
        return ""
    port = "" if parts["port"] is None else f":{parts['port']}"
    return f"{parts['scheme']}://{parts['host']}{port}" + ("/***" if parts["rest"] else "")


def leads_to_private(url: str) -> bool:
    """Whether the host is this machine, or an address that is not public in whatever spelling.

    Other names are judged at each connect.
    """
    parts = _URL.fullmatch(url)
    host = "" if parts is None else parts["host"].strip("[]").removesuffix(".").lower()
    try:
        return _is_localhost(host) or not is_public(_spelled_out(host))
    except ValueError:
        return False


def _is_localhost(host: str) -> bool:
    """RFC 6761, section 6.3."""
    return host == "localhost" or host.endswith(".localhost")


def _spelled_out(host: str) -> str:
    """Write 127.1, 0x7f.1 and 2130706433 as resolvers read them: 127.0.0.1."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host
