"""Request ids, and the one line a request leaves in the log."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from tests.unit.api.in_memory import InMemoryQueue, valid_body

Lines = Callable[[], list[dict[str, Any]]]


@pytest.mark.parametrize("given", ["a", "x" * 128, "A-z_0.9:b", str(uuid4())])
def test_a_fit_request_id_is_echoed(client: FlaskClient, given: str) -> None:
    headers = {"X-Request-ID": given}

    assert client.get("/health", headers=headers).headers["X-Request-ID"] == given
    failed = client.get("/nowhere", headers=headers)
    assert failed.headers["X-Request-ID"] == given
    assert failed.json is not None
    assert failed.json["requestId"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a,b", "é", "a/b", "<script>"])
def test_an_unfit_request_id_is_replaced(client: FlaskClient, given: str) -> None:
    response = client.get("/nowhere", headers={"X-Request-ID": given})

    made = response.headers["X-Request-ID"]
    assert UUID(made).version == 4
    assert response.json is not None
    assert response.json["requestId"] == made


def test_requests_without_an_id_get_different_ones(client: FlaskClient) -> None:
    first, second = client.get("/health"), client.get("/health")

    assert first.headers["X-Request-ID"] != second.headers["X-Request-ID"]


def test_a_request_leaves_one_line(client: FlaskClient, log_lines: Lines) -> None:
    client.post("/notifications?q=secret", json=valid_body(), headers={"X-Request-ID": "abc"})

    (line,) = log_lines()
    assert line["level"] == 30
    assert line["msg"] == "POST /notifications 201"
    assert line["requestId"] == "abc"
    assert line["req"] == {"method": "POST", "path": "/notifications"}
    assert line["res"] == {"statusCode": 201}
    assert isinstance(line["responseTime"], int)


@pytest.mark.parametrize(
    ("content", "path", "status"),
    [
        (b"{", "/notifications", 400),
        (b" " * 70_000, "/notifications", 413),
        (b"{}", "/notifications", 400),
        (b"", "/nowhere", 404),
    ],
)
def test_a_refused_request_leaves_one_warning(
    client: FlaskClient, log_lines: Lines, content: bytes, path: str, status: int
) -> None:
    client.post(path, data=content, content_type="application/json")

    (line,) = log_lines()
    assert line["level"] == 40
    assert line["res"] == {"statusCode": status}


@pytest.mark.parametrize("path", ["/health", "/Health/"])
@pytest.mark.parametrize("up", [True, False])
def test_probes_leave_no_line(
    client: FlaskClient, queue: InMemoryQueue, log_lines: Lines, path: str, *, up: bool
) -> None:
    queue.up = up
    client.get(path)
    client.post(path)

    assert log_lines() == []


@pytest.mark.parametrize(
    ("target", "logged"),
    [
        ("/notifications/alice@example.com", "/notifications/:value"),
        ("/Notifications/alice@example.com/", "/Notifications/:value/"),
        ("/alice/notifications?alice", "/:value/notifications"),
        ("/notifications/%61lice", "/notifications/:value"),
        (f"/notifications/{UUID(int=0)}", f"/notifications/{UUID(int=0)}"),
        ("/notifications/alice/Retry?alice", "/notifications/:value/Retry"),
        (f"/notifications/{UUID(int=0)}/retry", f"/notifications/{UUID(int=0)}/retry"),
        ("/notifications?recipient=alice&cursor=alice&alice", "/notifications"),
        ("//alice", "//:value"),
        ("/health/alice", "/health/:value"),
    ],
)
def test_a_line_shows_only_route_words_and_uuids(
    client: FlaskClient, log_lines: Lines, target: str, logged: str
) -> None:
    client.get("/", environ_overrides={"RAW_URI": target})

    (line,) = log_lines()
    assert line["req"]["path"] == logged
    assert "alice" not in str(line)


def test_nothing_a_caller_says_is_in_the_log(
    client: FlaskClient, queue: InMemoryQueue, log_lines: Lines
) -> None:
    marked = valid_body(recipient="marker", payload={"marker": "marker"}, idempotencyKey="marker")
    headers = {"User-Agent": "marker", "Cookie": "marker=marker", "Authorization": "marker"}
    for body in (marked, marked | {"priority": "LOW"}, marked | {"marker": 1}):
        client.post("/notifications?marker=marker", json=body, headers=headers)
    for query in ("recipient=marker", "cursor=marker", "marker=1"):
        client.get(f"/notifications?{query}", headers=headers)
    for body in ({"recipient": "marker"}, {"marker": 1}):
        client.post("/notifications/retry", json=body, headers=headers)
    queue.fails_with = RuntimeError("marker")
    client.post("/notifications?marker", json=marked, headers=headers)

    assert len(log_lines()) == 10
    assert "marker" not in str(log_lines())


def test_a_surprise_is_logged_once_and_shown_to_nobody(
    client: FlaskClient, queue: InMemoryQueue, log_lines: Lines
) -> None:
    queue.fails_with = LookupError("SELECT secret-marker")

    response = client.post("/notifications", json=valid_body(), headers={"X-Request-ID": "abc"})

    assert response.status_code == 500
    assert response.json == {
        "statusCode": 500,
        "error": "Internal Server Error",
        "message": "An unexpected error occurred",
        "path": "/notifications",
        "requestId": "abc",
    }
    error, request = log_lines()
    assert (error["level"], error["msg"], error["requestId"]) == (50, "http.error", "abc")
    assert (error["method"], error["path"]) == ("POST", "/notifications")
    assert error["error"]["name"] == "LookupError"
    assert any("in_memory.py" in place for place in error["stack"])
    assert (request["level"], request["msg"]) == (50, "POST /notifications 500")
    assert "secret-marker" not in str(log_lines())


def test_the_id_of_one_request_is_not_left_to_the_next_line(
    client: FlaskClient, log_lines: Lines
) -> None:
    client.get("/nowhere", headers={"X-Request-ID": "first"})
    client.get("/nowhere", headers={"X-Request-ID": "second"})

    assert [line["requestId"] for line in log_lines()] == ["first", "second"]
