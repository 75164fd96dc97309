"""What the web server cannot read is refused like everything else, by gunicorn too."""

import json
import socket
from contextlib import suppress

import pytest

from tests.support.processes import Process, Processes

MARKER = "alice@example.com"


def _exchange(api: Process, sent: bytes) -> tuple[int, dict[str, str], str]:
    """Send bytes as they are; return the answer's status, headers and body."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=15) as client:
        client.sendall(sent)
        answer = b""
        while part := client.recv(65_536):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        (f"GET /{MARKER}{'x' * 5000} HTTP/1.1\r\n\r\n", 414, "Request-URI Too Long"),
        (f"GET /{MARKER} HTTP/7.0\r\n\r\n", 400, "Bad Request"),
        (f"ge t /{MARKER} HTTP/1.1\r\n\r\n", 400, "Bad Request"),
        (f"GET / HTTP/1.1\r\n{MARKER} : x\r\n\r\n", 400, "Bad Request"),
        (f"GET / HTTP/1.1\r\nA: {'x' * 9000}\r\n\r\n", 431, "Request Header Fields Too Large"),
        (f"POST / HTTP/1.1\r\nTransfer-Encoding: {MARKER}\r\n\r\n", 501, "Not Implemented"),
        (f"GET /health HTTP/1.1\r\nSCRIPT_NAME: /{MARKER}\r\n\r\n", 400, "Bad Request"),
    ],
    ids=["long line", "version", "method", "header name", "long header", "coding", "script name"],
)
def test_a_request_that_cannot_be_read_is_refused_in_the_one_shape(
    processes: Processes, sent: str, status: int, error: str
) -> None:
    api = processes.running("api")
    got, headers, body = _exchange(api, sent.encode())
    assert got == status
    refused = json.loads(body)
    assert list(refused) == ["statusCode", "error", "message", "path", "requestId"]
    assert refused["statusCode"] == status
    assert refused["error"] == error or status == 414  # its phrase has changed between Pythons
    assert headers["x-request-id"] == refused["requestId"]
    assert headers["x-content-type-options"] == "nosniff"
    [line] = api.lines("http.unread")
    assert line["requestId"] == refused["requestId"]
    assert MARKER not in body + api.text() + api.errors()


def test_a_body_that_never_arrives_is_given_up(processes: Processes) -> None:
    api = processes.running("api")
    head = "POST /notifications HTTP/1.1\r\nContent-Type: application/json\r\n"
    got, _, body = _exchange(
        api, f"{head}Connection: close\r\nContent-Length: 100\r\n\r\n{{".encode()
    )
    assert got == 408
    assert json.loads(body)["message"] == "Request body did not arrive within 10 seconds"


@pytest.mark.parametrize("role", ["api", "all"])
def test_what_comes_after_a_body_was_given_up_is_not_read_as_a_request(
    processes: Processes, role: str
) -> None:
    process = processes.running(role)
    head = "POST /notifications HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", process.port), timeout=20) as client:
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n200\r\nabc".encode())
        answer = client.recv(65_536)
        with suppress(OSError):
            client.sendall(b"GET /notifications/smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
            while part := client.recv(65_536):
                answer += part
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert not [line for line in process.lines() if "GET /notifications" in line["msg"]]


def test_both_servers_route_on_the_target_as_it_was_sent(processes: Processes) -> None:
    api, both = processes.running("api"), processes.running("all")
    for target in ("/notifications/%zz", "/notifications/a%2Fb", "/notifications%2Fx", "/%48ealth"):
        sent = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        answers = []
        for process in (api, both):
            status, _, body = _exchange(process, sent)
            refused = json.loads(body)
            answers.append((status, refused["message"], refused["path"]))
        assert answers[0] == answers[1]


def test_a_failed_migration_says_what_failed_and_quotes_nothing(processes: Processes) -> None:
    migrate = processes.start(
        "migrate",
        DATABASE_URL=f"postgresql://{MARKER.replace('@', '%40')}@127.0.0.1:1/x",
    )
    assert migrate.popen.wait(20) == 1
    assert "The migration failed (OperationalError" in migrate.errors()
    assert MARKER not in migrate.errors() + migrate.text()
