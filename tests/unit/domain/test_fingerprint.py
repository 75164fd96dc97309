"""The fingerprint is all that the caller said and nothing else (pitfall A7)."""

import random
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.fingerprint import fingerprint
from notify_queue.domain.job import Channel, NotificationRequest, Priority
from notify_queue.domain.schedule import parse_instant
from tests.support.jobs import a_request

_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
_PAYLOADS = st.dictionaries(st.text(max_size=5), _JSON, max_size=4)


def of_payload(payload: dict[str, Any]) -> str:
    return fingerprint(a_request(payload=payload))


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON with the keys of every object in another order."""
    match value:
        case dict():
            items = list(value.items())
            chance.shuffle(items)
            return {key: shuffled(item, chance) for key, item in items}
        case list():
            return [shuffled(item, chance) for item in value]
        case _:
            return value


def test_it_is_a_sha_256_in_lower_case_hex() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", fingerprint(a_request()))


@pytest.mark.parametrize(
    "changed",
    [
        {"recipient": "other@example.com"},
        {"recipient": "User@example.com"},
        {"channel": Channel.SMS},
        {"priority": Priority.HIGH},
        {"payload": {"subject": "hello", "more": None}},
        {"payload": {"subject": "Hello"}},
        {"payload": {}},
        {"delay_seconds": 61},
        {"send_at": datetime(2026, 12, 1, 8, tzinfo=UTC)},
    ],
    ids=str,
)
def test_every_field_that_changes_the_job_changes_it(changed: dict[str, Any]) -> None:
    said = {"delay_seconds": 60, **changed}
    assert fingerprint(a_request(**said)) != fingerprint(a_request(delay_seconds=60))


def test_the_key_it_stands_under_is_no_part_of_it() -> None:
    one, other = a_request(idempotency_key="a"), a_request(idempotency_key="b")
    assert fingerprint(one) == fingerprint(other)


def test_one_millisecond_makes_another_instant() -> None:
    moment = datetime(2026, 12, 1, 8, tzinfo=UTC)
    later = moment + timedelta(milliseconds=1)
    assert fingerprint(a_request(send_at=moment)) != fingerprint(a_request(send_at=later))


@pytest.mark.parametrize(
    "spelling",
    [
        "2026-12-01T08:30Z",
        "2026-12-01T09:30:00+01:00",
        "2026-12-01T08:30:00-00:00",
        "2026-12-01T08:30:00.000999Z",
    ],
)
def test_an_instant_counts_the_same_in_every_accepted_spelling(spelling: str) -> None:
    plain = a_request(send_at=parse_instant("2026-12-01T08:30:00Z"))
    assert fingerprint(a_request(send_at=parse_instant(spelling))) == fingerprint(plain)


def test_an_integral_number_counts_the_same_with_and_without_a_fraction() -> None:
    assert of_payload({"n": 1.0}) == of_payload({"n": 1})
    assert of_payload({"deep": [{"n": 1e3}]}) == of_payload({"deep": [{"n": 1000}]})


def test_zero_has_no_sign() -> None:
    assert of_payload({"n": -0.0}) == of_payload({"n": 0.0}) == of_payload({"n": 0})


@pytest.mark.parametrize("other", [True, "1", 1.5, None, [1], {"1": 1}], ids=repr)
def test_a_value_of_another_type_is_another_request(other: object) -> None:
    assert of_payload({"n": other}) != of_payload({"n": 1})


def test_the_order_of_a_list_means_something() -> None:
    assert of_payload({"to": [1, 2]}) != of_payload({"to": [2, 1]})


def test_text_from_one_field_cannot_pass_for_another() -> None:
    one = a_request(recipient='a","channel":"SMS', channel=Channel.EMAIL)
    other = a_request(recipient="a", channel=Channel.SMS)
    assert fingerprint(one) != fingerprint(other)


@given(payload=_PAYLOADS, chance=st.randoms(use_true_random=False))
def test_the_order_of_keys_never_counts_at_any_depth(
    payload: dict[str, Any], chance: random.Random
) -> None:
    assert of_payload(shuffled(payload, chance)) == of_payload(payload)


@given(one=_PAYLOADS, other=_PAYLOADS)
def test_two_payloads_that_differ_in_text_have_two_fingerprints(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    # repr tells True from 1, which == does not.
    same = repr(_sorted(one)) == repr(_sorted(other))
    assert (of_payload(one) == of_payload(other)) == same


def test_it_does_not_change_between_releases() -> None:
    """Stored fingerprints are compared with new ones for ever: this value may never change."""
    request = NotificationRequest(
        recipient="ada@example.com",
        channel=Channel.EMAIL,
        payload={"b": 1.0, "a": "\N{LATIN SMALL LETTER E WITH ACUTE}"},
        priority=Priority.NORMAL,
        idempotency_key="order-1",
        send_at=datetime(2026, 12, 1, 8, 30, tzinfo=UTC),
    )
    said = (
        r'{"channel":"EMAIL","payload":{"a":"\u00e9","b":1},"priority":"NORMAL",'
        r'"recipient":"ada@example.com","sendAt":"2026-12-01T08:30:00.000+00:00"}'
    )
    assert fingerprint(request) == sha256(said.encode()).hexdigest()


def _sorted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value
