"""The mock provider's rules, in their order, on a record in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID, uuid4

import gevent
import pytest
from sqlalchemy.orm import sessionmaker

from notify_queue.delivery.mock_provider import MockProvider
from notify_queue.delivery.provider import Message
from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Delivered, Failed, Outcome, Refused
from notify_queue.persistence.repositories.mock_records import MockRecords
from notify_queue.persistence.unit_of_work import UnitOfWork

ALMOST_ONE = 1 - 2**-53


@dataclass
class Record:
    """What the mock has accepted, and how often it was asked."""

    accepted: dict[str, UUID] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    commits: int = 0

    def __call__(self) -> UnitOfWork:
        return RecordUnit(self)


class RecordUnit(UnitOfWork):
    """The real one, with a session that is bound to nothing."""

    def __init__(self, record: Record) -> None:
        super().__init__(sessionmaker())
        self._record = record

    def commit(self) -> None:
        self._record.commits += 1

    @cached_property
    def mock_records(self) -> MockRecords:
        return InMemoryRecords(self._record)


class InMemoryRecords(MockRecords):
    """Accepts a key once."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def accepted(self, keys: Iterable[str]) -> dict[str, UUID]:
        self._record.statements.append("accepted")
        known = self._record.accepted
        return {key: known[key] for key in keys if key in known}

    def accept(self, rows: Sequence[Mapping[str, str]]) -> dict[str, UUID]:
        self._record.statements.append("accept")
        new = {row["delivery_key"]: uuid4() for row in rows}
        fresh = {key: id_ for key, id_ in new.items() if key not in self._record.accepted}
        self._record.accepted |= fresh
        return fresh


class Draws:
    """Gives the same number for every draw and counts them."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return self.number


@pytest.fixture
def record() -> Record:
    return Record()


def provider(
    record: Record, rate: float = 0, draw: Callable[[], float] = lambda: 0.5, latency_ms: int = 0
) -> MockProvider:
    return MockProvider(record, rate, latency_ms, draw)


def message(key: str = "key-1", recipient: str = "ada@example.com") -> Message:
    return Message(key, Channel.EMAIL, recipient, {"subject": "Hello"})


def deliver_together(mock: MockProvider, messages: Sequence[Message]) -> list[Outcome]:
    calls = [gevent.spawn(mock.deliver, each) for each in messages]
    return [call.get(timeout=5) for call in calls]


def test_a_new_key_is_delivered_and_recorded(record: Record) -> None:
    outcome = provider(record).deliver(message())
    assert outcome == Delivered(str(record.accepted["key-1"]))
    assert record.commits == 1


def test_a_known_key_is_a_duplicate_under_its_first_message_id(record: Record) -> None:
    mock = provider(record)
    first = mock.deliver(message())
    assert isinstance(first, Delivered)
    assert mock.deliver(message()) == Delivered(first.message_id, duplicate=True)


def test_a_known_key_goes_before_every_other_rule(record: Record) -> None:
    record.accepted["key-1"] = UUID(int=7)
    draws = Draws(0)
    outcome = provider(record, 1, draws).deliver(message(recipient="invalid@example.com"))
    assert outcome == Delivered(str(UUID(int=7)), duplicate=True)
    assert draws.count == 0


def test_a_rejected_recipient_is_refused_for_good_and_consumes_no_draw(record: Record) -> None:
    draws = Draws(0)
    outcome = provider(record, 1, draws).deliver(message(recipient="invalid@example.com"))
    assert outcome == Refused("Recipient rejected by provider")
    assert draws.count == 0
    assert record.accepted == {}


@pytest.mark.parametrize(
    "recipient", ["Invalid@example.com", " invalid@example.com", "not-invalid@example.com"]
)
def test_only_the_prefix_to_the_letter_is_rejected(record: Record, recipient: str) -> None:
    assert isinstance(provider(record).deliver(message(recipient=recipient)), Delivered)


@pytest.mark.parametrize(("rate", "draw"), [(1, 0.0), (1, ALMOST_ONE), (0.2, 0.0), (0.2, 0.199)])
def test_a_draw_below_the_failure_rate_is_an_outage(
    record: Record, rate: float, draw: float
) -> None:
    outcome = provider(record, rate, Draws(draw)).deliver(message())
    assert outcome == Failed("Simulated provider outage")
    assert record.accepted == {}


@pytest.mark.parametrize(
    ("rate", "draw"), [(0, 0.0), (0, ALMOST_ONE), (0.2, 0.2), (0.2, ALMOST_ONE)]
)
def test_a_draw_at_or_above_the_failure_rate_is_delivered(
    record: Record, rate: float, draw: float
) -> None:
    outcome = provider(record, rate, Draws(draw)).deliver(message())
    assert outcome == Delivered(str(record.accepted["key-1"]))


def test_a_failed_key_can_be_delivered_later(record: Record) -> None:
    assert isinstance(provider(record, rate=1).deliver(message()), Failed)
    assert isinstance(provider(record).deliver(message()), Delivered)


def test_one_key_twice_at_once_is_one_delivery_and_one_duplicate(record: Record) -> None:
    one, other = deliver_together(provider(record), [message(), message()])
    id_ = str(record.accepted["key-1"])
    assert [one, other] == [Delivered(id_), Delivered(id_, duplicate=True)]


def test_a_key_that_another_worker_records_in_between_is_a_duplicate(record: Record) -> None:
    def meanwhile() -> float:
        record.accepted["key-1"] = UUID(int=7)
        return 0.5

    outcome = provider(record, draw=meanwhile).deliver(message())
    assert outcome == Delivered(str(UUID(int=7)), duplicate=True)


def test_calls_of_one_moment_share_their_statements(record: Record) -> None:
    messages = [message(f"key-{n}") for n in range(20)]
    outcomes = deliver_together(provider(record), messages)
    assert outcomes == [Delivered(str(record.accepted[each.delivery_key])) for each in messages]
    assert record.statements == ["accepted", "accept"]


def test_nothing_is_asked_before_the_latency_is_over(record: Record) -> None:
    call = gevent.spawn(provider(record, latency_ms=60_000).deliver, message())
    gevent.idle()
    assert record.statements == []
    call.kill(timeout=5)


def test_the_latency_is_taken_by_every_call_at_once_and_not_in_turn(record: Record) -> None:
    mock = provider(record, latency_ms=50)
    with gevent.Timeout(2):
        outcomes = deliver_together(mock, [message(f"key-{n}") for n in range(200)])
    assert len(outcomes) == 200
