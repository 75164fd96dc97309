"""/health tells of the database within a probe's patience, whatever else is going on."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
import requests
from sqlalchemy import Engine

from tests.support.faults import API, OwnServer, own_server, waiting_for_a_lock, writes_blocked
from tests.support.load import a_body, at_once, in_background, post
from tests.support.processes import Process, Processes
from tests.support.waiting import until

# The promise is 2 s; a probe that waits no longer than that must get its answer.
_PATIENCE_S = 2


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with own_server() as own:
        yield own


@pytest.fixture(scope="module")
def both(own: OwnServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Process]]:
    """An API and a worker on the server of our own, which outlive each of its faults."""
    with Processes(own.url, tmp_path_factory.mktemp("processes")) as processes:
        started = [processes.start("api"), processes.start("worker")]
        for process in started:
            process.wait_until_healthy()
        yield started


def _health(process: Process) -> requests.Response:
    return requests.get(f"{process.url}/health", timeout=_PATIENCE_S)


def _assert_down(processes: list[Process]) -> None:
    for answer in at_once([partial(_health, process) for process in processes]):
        assert answer.status_code == 503
        assert answer.json()["status"] == "error"
        assert answer.json()["error"]["database"]["status"] == "down"


def _wait_until_up(processes: list[Process]) -> None:
    until(lambda: all(_health(process).ok for process in processes), "every /health to be up again")


def test_health_is_up_down_while_the_database_is_stopped_and_up_again(
    own: OwnServer, both: list[Process]
) -> None:
    for process in both:
        assert _health(process).json()["info"]["database"]["status"] == "up"
    with own.down():
        _assert_down(both)
    _wait_until_up(both)


def test_health_is_down_in_time_while_the_database_is_frozen_and_up_again(
    own: OwnServer, both: list[Process]
) -> None:
    with own.frozen():
        _assert_down(both)
        # The next probe finds a pool that has lost a connection to the first.
        _assert_down(both)
    _wait_until_up(both)


def test_health_answers_while_other_requests_hang(processes: Processes, engine: Engine) -> None:
    api = processes.running("api")
    with writes_blocked(engine):
        hanging = [in_background(partial(post, api, a_body())) for _ in range(3)]
        until(lambda: waiting_for_a_lock(engine, API) == 3, "three requests to hang")
        assert _health(api).status_code == 200
        assert not any(request.done() for request in hanging)
    assert [request.result().status_code for request in hanging] == [201] * 3


def test_health_answers_in_time_however_many_requests_hang_on_a_frozen_database(
    own: OwnServer, both: list[Process]
) -> None:
    api, _ = both
    with own.frozen():
        hanging = [in_background(partial(post, api, a_body())) for _ in range(100)]
        _assert_down([api])
    assert {request.result().status_code for request in hanging} <= {201, 500}
    _wait_until_up(both)


def test_health_answers_while_clients_hold_connections_and_say_nothing(
    processes: Processes,
) -> None:
    api = processes.running("api")
    head = b"POST /notifications HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with ExitStack() as open_sockets:
        for sent in [b"", head, head + b"Content-Length: 100\r\n\r\n{"] * 40:
            client = open_sockets.enter_context(
                socket.create_connection(("127.0.0.1", api.port), timeout=5)
            )
            client.sendall(sent)
        assert _health(api).status_code == 200
