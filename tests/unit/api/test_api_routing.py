"""Which paths and methods exist, and how they may be spelled."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from flask.testing import FlaskClient

from notify_queue.domain.lifecycle import Status
from tests.unit.api.in_memory import InMemoryQueue, valid_body

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse


def raw(target: str) -> dict[str, str]:
    """Send exactly this request target."""
    return {"RAW_URI": target}


@pytest.mark.parametrize("path", ["/notifications", "/Notifications", "/NOTIFICATIONS/"])
def test_a_path_matches_in_any_case_and_with_one_trailing_slash(
    client: FlaskClient, path: str
) -> None:
    assert client.post(path, json=valid_body()).status_code == 201


@pytest.mark.parametrize("path", ["/health", "/Health", "/health/"])
def test_health_matches_in_the_same_way(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("role", ["api", "all"])
def test_every_role_but_the_worker_serves_all_paths(queue: InMemoryQueue, role: str) -> None:
    client = queue.app(role).test_client()

    assert client.post("/notifications", json=valid_body()).status_code == 201
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/nowhere",
        "/notifications//",
        "//notifications",
        "//health",
        "/notifications//retry",
        "/notifications//x",
        "/notifications/a/b",
        "/notifications/a/retry/b",
        "/notifications/a//retry",
        "/notifications/retry//",
        "/retry",
        "/health/x",
        "/n%6Ftifications",
        "/health%2F",
        "/%FF",
        "*",
    ],
)
def test_any_other_path_does_not_exist(client: FlaskClient, target: str) -> None:
    response = client.get("/", environ_overrides=raw(f"{target}?a=%00&b=c"))

    assert response.status_code == 404
    assert response.json is not None
    assert response.json["error"] == "Not Found"
    assert response.json["message"] == f"Cannot GET {target}?a=%00&b=c"
    assert response.json["path"] == target


def test_a_target_with_an_origin_is_its_path(client: FlaskClient) -> None:
    assert client.get("/", environ_overrides=raw("http://x.test/Health?a=b")).status_code == 200

    response = client.get("/x", environ_overrides=raw("http://x.test"))

    assert response.json is not None
    assert response.json["message"] == "Cannot GET /"


def test_a_server_that_keeps_no_request_line_is_served_too(queue: InMemoryQueue) -> None:
    app = queue.app()
    serve = app.wsgi_app

    def bare(environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Stand for a server that hands over the decoded path only."""
        kept = {name: value for name, value in environ.items() if name != "RAW_URI"}
        return serve(kept, start_response)

    client = app.test_client()
    app.wsgi_app = bare  # type: ignore[method-assign] # a server in between

    assert client.get("/health").status_code == 200
    response = client.get("/caf%C3%A9/a%2520b?q=1")
    assert response.json is not None
    assert response.json["message"] == "Cannot GET /caf%C3%A9/a%2520b?q=1"
    assert response.json["path"] == "/caf%C3%A9/a%2520b"


ID = "01890000-0000-7000-8000-00000000000A"
# Every path there is, in an odd spelling of its own, and what may be done with it.
ALLOWED = {
    "/Health/": {"GET", "HEAD"},
    "/Notifications/": {"GET", "HEAD", "POST"},
    f"/NOTIFICATIONS/{ID}/": {"DELETE", "GET", "HEAD"},
    f"/notifications/{ID}/Retry/": {"POST"},
    # Also an id of the path above it, if not a good one.
    "/notifications/RETRY/": {"DELETE", "GET", "HEAD", "POST"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_method_is_told_the_right_ones(client: FlaskClient, path: str, method: str) -> None:
    response = client.open(f"{path}?a=b", method=method)

    if method in ALLOWED[path]:
        assert response.status_code != 405
        return
    assert response.status_code == 405
    assert response.headers["Allow"] == ", ".join(sorted(ALLOWED[path]))
    if method != "HEAD":
        assert response.json is not None
        assert response.json["error"] == "Method Not Allowed"
        assert response.json["message"] == f"Cannot {method} {path}?a=b"
        assert response.json["path"] == path


@pytest.mark.parametrize("path", ["/notifications/retry", "/Notifications/Retry/"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_word_retry_is_an_id_like_any_other_and_no_good_one(
    client: FlaskClient, path: str, method: str
) -> None:
    response = client.open(path, method=method)

    assert response.status_code == 400
    assert response.json is not None
    assert response.json["message"] == "Validation failed (uuid is expected)"
    assert response.json["path"] == path


def test_retry_twice_is_the_retry_of_no_good_id(client: FlaskClient, queue: InMemoryQueue) -> None:
    assert client.post("/notifications/retry/retry").status_code == 400
    assert not queue.redrives


@pytest.mark.parametrize("suffix", ["", "/"])
def test_every_path_does_its_work_however_it_is_spelled(
    client: FlaskClient, queue: InMemoryQueue, suffix: str
) -> None:
    waiting, dead = queue.add(), queue.add(status=Status.DEAD_LETTERED)

    assert client.get(f"/NOTIFICATIONS{suffix}?limit=1").status_code == 200
    assert client.post(f"/Notifications/RETRY{suffix}", json={"limit": 1}).status_code == 200
    assert client.delete(f"/Notifications/{waiting.id}{suffix}").status_code == 200
    queue.jobs[dead.id] = dead
    assert client.post(f"/Notifications/{dead.id}/ReTry{suffix}").status_code == 200


def test_options_on_an_unknown_path_is_unknown(client: FlaskClient) -> None:
    assert client.options("/nowhere").status_code == 404


def test_every_get_answers_head_without_a_body(client: FlaskClient) -> None:
    created = client.post("/notifications", json=valid_body())
    assert created.json is not None

    for path in ("/health", "/notifications", f"/notifications/{created.json['id']}"):
        response = client.head(path)
        assert response.status_code == 200
        assert response.data == b""
        assert response.headers["Content-Length"] == str(len(client.get(path).data))


class TestWorker:
    """A worker's port shows its health and nothing else."""

    def test_it_serves_health(self, worker_client: FlaskClient) -> None:
        assert worker_client.get("/health").status_code == 200
        assert worker_client.head("/health").status_code == 200

    @pytest.mark.parametrize(
        "path",
        ["/notifications", "/Health", "/health/", "//health", "/", "/notifications/%zz", "/HEALTH"],
    )
    @pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
    def test_it_sends_every_other_path_elsewhere(
        self, worker_client: FlaskClient, path: str, method: str
    ) -> None:
        response = worker_client.open("/", method=method, environ_overrides=raw(f"{path}?a=b"))

        assert response.status_code == 404
        assert response.json is not None
        assert response.json["error"] == "Not Found"
        assert response.json["path"] == path
        assert response.json["message"] == (
            f"{path} is not served by a worker instance (APP_ROLE=worker); "
            "send API requests to an API instance"
        )

    def test_it_refuses_a_wrong_method_in_the_ordinary_words(
        self, worker_client: FlaskClient
    ) -> None:
        response = worker_client.post("/health")

        assert response.status_code == 405
        assert response.headers["Allow"] == "GET, HEAD"
        assert response.json is not None
        assert response.json["message"] == "Cannot POST /health"
