"""The mock provider's store: each key is accepted once, whoever asks."""

from notify_queue.delivery.mock_provider import MockProvider
from notify_queue.delivery.provider import Message
from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Delivered
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs


def a_row(key: str) -> dict[str, str]:
    return {"delivery_key": key, "recipient": "a@example.com", "channel": "EMAIL"}


def test_a_key_is_new_once(unit_of_work: UnitOfWorkFactory) -> None:
    with unit_of_work() as unit:
        first = unit.mock_records.accept([a_row("a"), a_row("b")])
        again = unit.mock_records.accept([a_row("b"), a_row("c")])
        assert set(first) == {"a", "b"}
        assert set(again) == {"c"}
        assert unit.mock_records.accepted(["a", "b", "c", "d"]) == {**first, **again}


def test_the_mock_provider_delivers_a_key_once_and_then_knows_it(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    provider = MockProvider(unit_of_work, failure_rate=0, latency_ms=0, random=lambda: 0.5)
    message = Message("key", Channel.SMS, "+4912345", {})
    first = provider.deliver(message)
    assert isinstance(first, Delivered)
    assert not first.duplicate
    assert provider.deliver(message) == Delivered(first.message_id, duplicate=True)
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 1


def test_a_key_twice_in_one_round_is_one_delivery_and_one_duplicate(
    unit_of_work: UnitOfWorkFactory,
) -> None:
    provider = MockProvider(unit_of_work, failure_rate=0, latency_ms=0, random=lambda: 0.5)
    message = Message("key", Channel.SMS, "+4912345", {})
    first, second = provider._record([message, message])
    assert (first.duplicate, second.duplicate) == (False, True)
    assert first.message_id == second.message_id
