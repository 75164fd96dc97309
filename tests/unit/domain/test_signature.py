"""Signatures are those of Standard Webhooks: an independent library verifies them."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from notify_queue.domain.signature import TOLERANCE_S, decode_secret, is_signed, sign
from tests.support.processes import ROOT

TEXT = f"whsec_{b64encode(b'k' * 32).decode()}"
OTHER = f"whsec_{b64encode(b'o' * 24).decode()}"
SECRET = decode_secret(TEXT)
BODY = b'{"eventId":"e"}'
# As servers hand headers on.
LATIN_1 = st.text(st.characters(codec="latin-1"))
NOW = 1_796_081_714


def test_the_library_accepts_what_we_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = sign("e", NOW, BODY, [SECRET])
    headers = {"webhook-id": "e", "webhook-timestamp": str(NOW), "webhook-signature": signature}
    monkeypatch.setattr("standardwebhooks.webhooks.datetime", _at(NOW))
    assert Webhook(TEXT).verify(BODY, headers) == {"eventId": "e"}
    with pytest.raises(WebhookVerificationError):
        Webhook(TEXT).verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(BODY, headers)


def _at(now: float) -> type[datetime]:
    class Fixed(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Fixed":
            assert tz is not None
            return cls.fromtimestamp(now, UTC)

    return Fixed


def _example() -> Callable[[Mapping[str, str], bytes, str], bool]:
    """The receiver's function that docs/webhooks.md shows."""
    page = (ROOT / "docs" / "webhooks.md").read_text()
    made: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], made)
    verify: Callable[[Mapping[str, str], bytes, str], bool] = made["verify"]
    return verify


def _headers(event_id: str, timestamp: str, signature: str) -> dict[str, str]:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return dict(zip(names, (event_id, timestamp, signature), strict=True))


def test_the_example_for_receivers_accepts_what_we_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    verify = _example()
    headers = _headers("e", str(NOW), sign("e", NOW, BODY, [decode_secret(OTHER), SECRET]))
    monkeypatch.setattr("time.time", lambda: NOW + 299)
    assert verify(headers, BODY, TEXT)
    assert not verify(headers, BODY + b" ", TEXT)
    for off in (-300, 300):
        monkeypatch.setattr("time.time", lambda off=off: NOW + off)
        assert not verify(headers, BODY, TEXT)


@given(st.tuples(LATIN_1, LATIN_1, LATIN_1), st.binary())
def test_the_example_for_receivers_refuses_what_a_stranger_writes_without_an_error(
    headers: tuple[str, str, str], body: bytes
) -> None:
    verify = _example()
    assert not verify(_headers(*headers), body, TEXT)
    assert not verify({}, body, TEXT)


def test_two_secrets_make_two_signatures_and_either_will_do() -> None:
    both = [SECRET, decode_secret(OTHER)]
    signature = sign("e", NOW, BODY, both)
    assert len(signature.split(" ")) == 2
    for secret in both:
        assert is_signed(("e", str(NOW), signature), BODY, [secret], NOW)


@pytest.mark.parametrize("off", [-TOLERANCE_S, 0, TOLERANCE_S])
def test_a_clock_may_be_off_by_five_minutes(off: int) -> None:
    signature = sign("e", NOW, BODY, [SECRET])
    assert is_signed(("e", str(NOW), signature), BODY, [SECRET], NOW + off)
    assert not is_signed(("e", str(NOW), signature), BODY, [SECRET], NOW + off + (off or 999))


@pytest.mark.parametrize(
    "headers",
    [
        ("", "", ""),
        ("other", str(NOW), sign("e", NOW, BODY, [SECRET])),
        ("e", str(NOW + 1), sign("e", NOW, BODY, [SECRET])),
        ("e", f"+{NOW}", sign("e", NOW, BODY, [SECRET])),
        ("e", "1e9", sign("e", NOW, BODY, [SECRET])),
        ("e", "٣" * 10, sign("e", NOW, BODY, [SECRET])),
        ("e", str(NOW), sign("e", NOW, BODY, [SECRET]).replace("v1,", "v2,")),
        ("e", str(NOW), sign("e", NOW, BODY, [SECRET]).removeprefix("v1,")),
        ("e", str(NOW), "v1,"),
        ("e", str(NOW), "v1,\xe9 \u2603 \ud800"),
        ("\ud800", str(NOW), sign("e", NOW, BODY, [SECRET])),
    ],
)
def test_what_is_not_quite_right_is_wrong(headers: tuple[str, str, str]) -> None:
    assert not is_signed(headers, BODY, [SECRET], NOW)


def test_the_right_one_may_stand_anywhere_among_many() -> None:
    wrong = " ".join(["v1a,x", "", "\xe9", *(f"v1,{n}" for n in range(1_000))])
    right = sign("e", NOW, BODY, [SECRET])
    assert not is_signed(("e", str(NOW), wrong), BODY, [SECRET], NOW)
    for signatures in (f"{right} {wrong}", f"{wrong} {right}"):
        assert is_signed(("e", str(NOW), signatures), BODY, [SECRET], NOW)


@given(st.tuples(st.text(), st.text(), st.text()), st.binary())
def test_whatever_a_stranger_writes_is_refused_without_an_error(
    headers: tuple[str, str, str], body: bytes
) -> None:
    assert not is_signed(headers, body, [SECRET], NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        b64encode(b"k" * 32).decode(),
        f"WHSEC_{b64encode(b'k' * 32).decode()}",
        f"whsec_{b64encode(b'k' * 23).decode()}",
        f"whsec_{b64encode(b'k' * 65).decode()}",
        f"whsec_{b64encode(b'k' * 32).decode()}!",
        "whsec_" + "é" * 32,
    ],
)
def test_a_secret_has_one_form(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_secret(text)


@pytest.mark.parametrize("length", [24, 64])
def test_a_secret_has_24_to_64_bytes(length: int) -> None:
    assert decode_secret(f"whsec_{b64encode(b'k' * length).decode()}") == b"k" * length
