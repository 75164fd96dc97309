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

# Parameters whose values tell an operator where a process connects to. The value of any other is
# masked, so that a password or key passed this way stays unseen.
_SHOWN: Final = frozenset({"host", "port", "sslmode", "target_session_attrs"})


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
        return _normal(url, hosts)


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
    query = parse_qsl(url["query"] or "", keep_blank_values=True)
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
    """Hide the password, and every parameter that is not known to be harmless."""
    url = _URL.fullmatch(normal)
    if url is None:
        return "***"
    return _build(
        user=url["user"],
        password=None if url["password"] is None else "***",
        host=url["hosts"],
        database=url["database"],
        query=[
            (name, value if name in _SHOWN else "***")
            for name, value in parse_qsl(url["query"] or "", keep_blank_values=True)
        ],
    )
