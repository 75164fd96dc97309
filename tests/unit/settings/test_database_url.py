"""The database's address: which forms are taken, what they become, what is shown of them."""

import pytest
from sqlalchemy import create_engine, make_url

from notify_queue.settings import InvalidSettingsError, describe, load

MARKER = "hunter2secret"


def normal(url: str) -> str:
    return load({"DATABASE_URL": url}).database_url


def connect_arguments(url: str) -> dict[str, object]:
    """What psycopg2 is going to be asked for."""
    engine = create_engine(normal(url))
    _, arguments = engine.dialect.create_connect_args(engine.url)
    return dict(arguments)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_each_spelling_of_the_scheme_selects_psycopg2(scheme: str) -> None:
    url = normal(f"{scheme}://user:password@db.example:5432/queue")
    assert url == "postgresql+psycopg2://user:password@db.example:5432/queue"
    assert make_url(url).get_driver_name() == "psycopg2"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://h/db", {"host": "h", "dbname": "db"}),
        ("postgres://u@h/db", {"host": "h", "user": "u", "dbname": "db"}),
        ("postgres://[::1]:5433/db", {"host": "::1", "port": 5433, "dbname": "db"}),
        ("postgres:///db?host=/run/postgresql", {"host": "/run/postgresql", "dbname": "db"}),
        (
            "postgres:///db?host=/cloudsql/project:europe-west1:queue&port=5433",
            {"host": "/cloudsql/project:europe-west1:queue", "port": "5433", "dbname": "db"},
        ),
        (
            "postgres://h/db?connect_timeout=10&application_name=mine",
            {"host": "h", "dbname": "db", "connect_timeout": "10", "application_name": "mine"},
        ),
        (
            "postgres://u:p%40%2F%23:x@h/db?sslmode=require",
            {"host": "h", "user": "u", "password": "p@/#:x", "dbname": "db", "sslmode": "require"},
        ),
        (
            "postgres://u:p@h1:5432,h2:5433/db?target_session_attrs=read-write",
            {
                "host": "h1,h2",
                "port": "5432,5433",
                "user": "u",
                "password": "p",
                "dbname": "db",
                "target_session_attrs": "read-write",
            },
        ),
        (
            "postgres://h/db?sslmode=verify-full&sslrootcert=/etc/ssl/a%20b.pem",
            {
                "host": "h",
                "dbname": "db",
                "sslmode": "verify-full",
                "sslrootcert": "/etc/ssl/a b.pem",
            },
        ),
    ],
)
def test_psycopg2_is_asked_for_what_the_url_says(url: str, expected: dict[str, object]) -> None:
    assert connect_arguments(url) == expected


def test_a_normal_url_stays_as_it_is() -> None:
    url = normal("postgres://u:p%40@h1:5432,h2/db?sslrootcert=/a%20b")
    assert normal(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:{}@h/db",
        "postgresql+psycopg://u:{}@h/db",
        "postgresql+asyncpg://u:{}@h/db",
        "http://u:{}@h/db",
        "postgres:u:{}@h/db",
        "{}",
        "postgres://u:{}@h",
        "postgres://u:{}@h/",
        "postgres://u:{}@h/?dbname=db",
        "postgres://u:{}@@h/db",
        "postgres://u:{}/x@h/db",
        "postgres://u:{}#x@h/db",
        "postgres://u:{}?x@h/db",
        "postgres://u:{} @h/db",
        "postgres://u:{}@h/db\n",
        " postgres://u:{}@h/db",
        "postgres://u:{}ö@h/db",
        "postgres://u:{}%00@h/db",
        "postgres://u:{}@h/db\x7f",
        "postgres://u:{}@h:0/db",
        "postgres://u:{}@h:65536/db",
        "postgres://u:{}@h:123456/db",
        "postgres://u:{}@h:port/db",
        "postgres://u:{}@h1,,h2/db",
        "postgres://u:{}@[::1/db",
        "postgres://u:{}@[::1],h2/db",
        "POSTGRES://u:{}@h/db",
        "postgres://u@h/db?password={}",
        "postgres://u@h/db?{}",
        "postgres://u@h/db?sslmode={}",
        "postgres://u@h/db?target_session_attrs={}",
        "postgres://u@h/db?port={}",
        "postgres://u@h/db?host=u:{}@h",
        "postgres://u@h/db?host=h%26password={}",
        "postgres://u@h/db?options=-c%20a={}",
        "postgres://u:{}@h/db?sslmode=require&sslmode=disable",
        "postgres://u@h/db?connect_timeout={}",
        "postgres://u@h/db?application_name={}%0a",
    ],
)
def test_anything_else_is_refused_without_being_quoted(url: str) -> None:
    for name in ("DATABASE_URL", "DATABASE_DIRECT_URL"):
        environ = {"DATABASE_URL": "postgres://h/db"} | {name: url.format(MARKER)}
        with pytest.raises(InvalidSettingsError, match=f"  - {name}: must ") as refusal:
            load(environ)
        assert MARKER not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://u:hunter2secret@h:1/db", "postgresql+psycopg2://u:***@h:1/db"),
        ("postgres://u@h/db?sslmode=require", "postgresql+psycopg2://u@h/db?sslmode=require"),
        (
            "postgres://u:hunter2secret@h1:1,h2:2/db",
            "postgresql+psycopg2://u:***@/db?host=h1:1&host=h2:2",
        ),
    ],
)
def test_what_is_shown_of_a_url_has_no_password(url: str, shown: str) -> None:
    listing = describe(load({"DATABASE_URL": url})).splitlines()
    assert f"DATABASE_URL={shown}" in listing
    assert f"DATABASE_DIRECT_URL={shown}" in listing
    assert MARKER not in "\n".join(listing)
