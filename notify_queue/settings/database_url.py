"""The address of a PostgreSQL database: one accepted form, one normal form, one masked form."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from marshmallow import ValidationError

# A bare postgresql:// would make SQLAlchemy look for another driver than the one installed.
_SCHEME: Final = "postgresql+psycopg2"
_MAX_PORT: Final = 65535

# Characters that mean something in a URL must be percent-encoded in a name or a password, as in
# libpq: read by guesswork, half a password could end up in the part that is shown.
_URL: Final = re.compile(
    r"(?:postgres|postgresql|postgresql\+psycopg2)://"
    r"(?:(?P<user>[^\s:@/?#]*)(?::(?P<password>[^\s@/?#]*))?@)?"
    r"(?P<hosts>[^\s@/?#]*)"
    r"/(?P<database>[^\s:@/?#]+)"
    r"(?:\?(?P<query>[^\s?#]*))?",
    re.ASCII,
)
_HOST: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")

_SOCKET: Final = re.compile(r"/[A-Za-z0-9._:/-]+")

# What may stand after the question mark: how to reach the server, and how to trust it. A misspelt
# parameter would otherwise come to light only when a process connects.
_CHOICES: Final = {
    "sslmode": {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
    "target_session_attrs": {
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    },
    "load_balance_hosts": {"disable", "random"},
    "channel_binding": {"disable", "prefer", "require"},
    "sslnegotiation": {"postgres", "direct"},
    "gssencmode": {"disable", "prefer", "require"},
    "ssl_min_protocol_version": {"TLSv1.2", "TLSv1.3"},
}
_PATHS: Final = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})
# Common in copied URLs; where we set the same, ours wins.
_NUMBERS: Final = frozenset(
    {"port", "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval"}
)
_NAME: Final = re.compile(r"[A-Za-z0-9 ._-]{1,63}")


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """``postgresql://user:password@host:port/database?parameters``; several hosts, by commas."""

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        return "URL, `postgresql://user:password@host:port/database`"

    def read(self, text: str) -> str:
        """Return the URL as SQLAlchemy and psycopg2 want it."""
        url = _URL.fullmatch(text)
        if url is None or not text.isascii() or not text.isprintable() or "%00" in text:
            raise ValidationError(
                "must be a URL like postgresql://user:password@host:port/database,"
                " with special characters percent-encoded"
            )
        hosts = url["hosts"].split(",") if url["hosts"] else []
        for host in hosts:
            _check_host(host, alone=len(hosts) == 1)
        parameters = _parameters(url)
        for name, value in parameters:
            _check_parameter(name, value)
        once = [name for name, _ in parameters if name != "host"]
        if len(once) > len(set(once)):
            raise ValidationError("must not repeat a parameter")
        return _normal(url, hosts)


def _parameters(url: re.Match[str]) -> list[tuple[str, str]]:
    return parse_qsl(url["query"] or "", keep_blank_values=True)


def _check_parameter(name: str, value: str) -> None:
    if name == "host":
        if not _SOCKET.fullmatch(value):
            _check_host(value, alone=False)
    elif name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ValidationError(f"must have a {name} that PostgreSQL knows")
    elif name in _NUMBERS:
        if not re.fullmatch(r"[0-9]{1,5}", value, re.ASCII):
            raise ValidationError(f"must have a {name} that is a number")
    elif name == "application_name":
        if not _NAME.fullmatch(value):
            raise ValidationError("must have an application_name of plain characters")
    elif name not in _PATHS:
        known = ", ".join(sorted({"host", "application_name", *_CHOICES, *_PATHS, *_NUMBERS}))
        raise ValidationError(f"must have no other parameters than {known}")


def _check_host(text: str, *, alone: bool) -> None:
    host = _HOST.fullmatch(text)
    if host is None:
        raise ValidationError("must name each host as host or host:port")
    if host["port"] and not 1 <= int(host["port"]) <= _MAX_PORT:
        raise ValidationError(f"must give ports from 1 to {_MAX_PORT}")
    if host["name"].startswith("[") and not alone:
        raise ValidationError("must not list an IPv6 address among several hosts; use a name")


def _normal(url: re.Match[str], hosts: list[str]) -> str:
    """SQLAlchemy takes one host before the path; several go into the query, one by one."""
    query = _parameters(url)
    if len(hosts) > 1:
        query = [("host", host) for host in hosts] + query
        hosts = []
    return _build(
        user=url["user"],
        password=url["password"],
        host="".join(hosts),
        database=url["database"],
        query=query,
    )


def _build(
    *,
    user: str | None,
    password: str | None,
    host: str,
    database: str,
    query: list[tuple[str, str]],
) -> str:
    secret = "" if password is None else f":{password}"
    login = "" if user is None else f"{user}{secret}@"
    parameters = f"?{urlencode(query, quote_via=quote, safe=':/*')}" if query else ""
    return f"{_SCHEME}://{login}{host}/{database}{parameters}"


def masked(normal: str) -> str:
    """Hide the password. The parameters that are accepted hold no secret."""
    url = _URL.fullmatch(normal)
    if url is None:
        return "***"
    return _build(
        user=url["user"],
        password=None if url["password"] is None else "***",
        host=url["hosts"],
        database=url["database"],
        query=_parameters(url),
    )
