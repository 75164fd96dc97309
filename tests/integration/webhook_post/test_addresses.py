"""Where a POST may lead: no private address, and nobody who is not whom the URL names."""

import socket
import ssl
from pathlib import Path

import pytest
import trustme

from tests.integration.webhook_post.conftest import IN_TIME_MS, Poster, StartPoster
from tests.support.receiver import Receiver

PRIVATE = "Host leads to an address that is not public"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
    ],
)
def test_no_spelling_leads_to_a_private_address(poster: Poster, host: str) -> None:
    with Receiver() as receiver:
        urls = [f"{scheme}://{host}:{receiver.port}/" for scheme in ("http", "https")]
        errors = [poster.post(url, allow_private=False)["error"] for url in urls]
    assert errors == [PRIVATE, PRIVATE]
    assert receiver.connections == 0


def test_one_private_address_among_public_ones_is_one_too_many(poster: Poster) -> None:
    with Receiver() as receiver:
        posted = poster.post(
            f"http://rebind.test:{receiver.port}/",
            allow_private=False,
            names={"rebind.test": [["8.8.8.8", "127.0.0.1"]]},
        )
    assert posted["error"] == PRIVATE
    assert receiver.connections == 0


def test_the_connection_goes_to_the_address_that_was_judged(poster: Poster) -> None:
    with Receiver() as receiver:
        # From its second look-up on, the name leads where nobody listens.
        names = {"rebind.test": [["127.0.0.1"], ["127.0.0.2"]]}
        posted = poster.post(f"http://rebind.test:{receiver.port}/", names=names)
    assert posted["status"] == 204


def test_the_next_address_is_tried_when_one_refuses(poster: Poster) -> None:
    with Receiver() as receiver:
        # The whole of 127/8 is this machine, and nobody listens on the first of the two.
        names = {"both.test": [["127.0.0.2", "127.0.0.1"]]}
        posted = poster.post(f"http://both.test:{receiver.port}/", names=names)
    assert posted["status"] == 204
    assert receiver.requests[0].headers["host"] == f"both.test:{receiver.port}"


def _tls(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_certificates_are_checked_against_the_name_and_who_signed(
    tmp_path: Path, start_poster: StartPoster
) -> None:
    trusted, stranger = trustme.CA(), trustme.CA()
    bundle = tmp_path / "ca.pem"
    trusted.cert_pem.write_to_path(str(bundle))
    poster = start_poster(SSL_CERT_FILE=str(bundle))
    names = {"hook.test": [["127.0.0.1"]]}
    with (
        Receiver(tls=_tls(trusted, "hook.test")) as good,
        Receiver(tls=_tls(trusted, "other.test")) as wrong_name,
        Receiver(tls=_tls(stranger, "hook.test")) as unknown,
    ):
        posted = [
            poster.post(f"https://hook.test:{receiver.port}/x?y=1", names=names, timeout_ms=5000)
            for receiver in (good, wrong_name, unknown)
        ]
    assert [each["status"] for each in posted] == [204, None, None]
    assert good.requests[0].target == "/x?y=1"
    assert posted[1]["error"] == posted[2]["error"] == "SSLCertVerificationError"
    assert wrong_name.requests == unknown.requests == []


def test_a_handshake_that_never_ends_ends_in_time_and_is_closed(poster: Poster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        posted = poster.post(url, timeout_ms=300)
        # The system has taken the connection, and nobody has looked at it so far.
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(IN_TIME_MS / 1000)
            while connection.recv(65536):
                pass
    assert posted["error"] == "ECONNABORTED: no answer within 300ms"
    assert posted["ms"] < IN_TIME_MS
