"""Free ports are found, and taken ones are seen whichever address they are taken on."""

import socket
from collections.abc import Iterator

import pytest

from notify_queue.local.errors import LocalError
from notify_queue.local.ports import free_ports, is_free


@pytest.fixture(params=["127.0.0.1", "0.0.0.0"])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    with socket.create_server((request.param, 0)) as server:
        yield server.getsockname()[1]


def test_a_port_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)


def test_a_port_is_free_again_once_its_server_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()
    assert is_free(port)


def test_taken_ports_are_passed_over(taken: int) -> None:
    assert next(free_ports([taken, 29_999, 29_998])) in {29_999, 29_998}


def test_running_out_of_ports_is_said(taken: int) -> None:
    with pytest.raises(LocalError, match="No free port"):
        next(free_ports([taken]))
