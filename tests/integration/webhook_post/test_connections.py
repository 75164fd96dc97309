"""Which connections are kept for the next POST, and which must not be."""

import pytest

from tests.integration.webhook_post.conftest import Poster, StartPoster
from tests.support.receiver import Receiver, answer, hang, once


def test_no_failure_uses_up_a_connection(poster: Poster) -> None:
    # There is one at once, so the next POST would wait in vain for what the last has not returned.
    with Receiver() as receiver:
        for act in (once(b""), hang, once(b"secret\r\n")):
            receiver.act = act
            assert poster.post(receiver.url)["error"]
            receiver.act = answer()
            assert poster.post(receiver.url)["status"] == 204


def test_no_proxy_is_asked(start_poster: StartPoster) -> None:
    with Receiver() as proxy, Receiver() as receiver:
        kinds = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        env = {name: proxy.url for kind in kinds for name in (kind, kind.lower())}
        poster = start_poster(**env, NO_PROXY="", no_proxy="")
        assert poster.post(receiver.url)["status"] == 204
    assert (proxy.connections, receiver.connections) == (0, 1)


def test_a_connection_is_used_again(poster: Poster) -> None:
    with Receiver(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as receiver:
        for _ in range(3):
            poster.post(receiver.url)
    assert [request.connection for request in receiver.requests] == [1, 1, 1]


@pytest.mark.parametrize(
    "order",
    [{"idle_s": 0.1, "pause_s": 0.2}, {"age_s": 0.1, "pause_s": 0.2}],
    ids=["idle", "old"],
)
def test_a_connection_is_not_used_for_ever(poster: Poster, order: dict[str, float]) -> None:
    with Receiver() as receiver:
        for _ in range(2):
            poster.post(receiver.url, **order)
    assert [request.connection for request in receiver.requests] == [1, 2]


EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", EARLY, EARLY * 3])
def test_interim_answers_are_not_the_answer(poster: Poster, interim: bytes) -> None:
    with Receiver(answer(interim + b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")) as receiver:
        assert [poster.post(receiver.url)["status"] for _ in range(2)] == [400, 400]
    assert [request.connection for request in receiver.requests] == [1, 1]


def test_a_connection_that_speaks_something_else_is_not_used_again(poster: Poster) -> None:
    with Receiver(answer(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")) as receiver:
        assert [poster.post(receiver.url)["status"] for _ in range(2)] == [101, 101]
    assert [request.connection for request in receiver.requests] == [1, 2]


def test_a_connection_with_an_unread_rest_is_not_used_again(poster: Poster) -> None:
    # The rest of the first answer would be read as the second.
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"x" * 20_000
    with Receiver(answer(long)) as receiver:
        posted = [poster.post(receiver.url)["status"] for _ in range(2)]
    assert posted == [200, 200]
    assert [request.connection for request in receiver.requests] == [1, 2]
