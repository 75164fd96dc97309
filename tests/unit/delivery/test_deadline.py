"""A provider call always ends, in an outcome, and never with a transaction open."""

from collections.abc import Callable
from dataclasses import dataclass

import gevent
import pytest
from gevent.event import Event
from sqlalchemy.orm import sessionmaker

from notify_queue.delivery.deadline import deliver_within
from notify_queue.delivery.provider import Message
from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Delivered, Failed, Outcome, Refused
from notify_queue.persistence.unit_of_work import OpenUnitOfWorkError, UnitOfWork

MESSAGE = Message("key-1", Channel.SMS, "ada@example.com", {})


@dataclass
class Acting:
    """A provider that does one thing."""

    act: Callable[[], Outcome]
    calls: int = 0

    def deliver(self, message: Message) -> Outcome:
        assert message is MESSAGE
        self.calls += 1
        return self.act()


def hang() -> Outcome:
    Event().wait()
    raise AssertionError("nobody sets this event")


def throw(error: BaseException) -> Acting:
    def act() -> Outcome:
        raise error

    return Acting(act)


@pytest.mark.parametrize("outcome", [Delivered("m", duplicate=True), Refused("no"), Failed("no")])
def test_the_providers_outcome_is_passed_on(outcome: Outcome) -> None:
    assert deliver_within(Acting(lambda: outcome), MESSAGE, 1_000) is outcome


def test_a_call_that_does_not_end_fails_at_its_deadline() -> None:
    assert deliver_within(Acting(hang), MESSAGE, 20) == Failed("Provider timed out after 20ms")


def test_a_deadline_that_was_kept_does_not_strike_later() -> None:
    deliver_within(Acting(lambda: Delivered("m")), MESSAGE, 10)
    # Longer than the deadline: it would be thrown into this wait.
    assert not Event().wait(0.03)


@pytest.mark.parametrize("error", [ConnectionResetError("to ada@example.com"), KeyError("x")])
def test_an_exception_is_a_failure_named_by_its_class(error: Exception) -> None:
    expected = Failed(f"Provider call failed: {type(error).__name__}")
    assert deliver_within(throw(error), MESSAGE, 1_000) == expected


@pytest.mark.parametrize("thrown", [gevent.Timeout(None), SystemExit(3)])
def test_not_even_an_adapters_own_timeout_or_exit_gets_out(thrown: BaseException) -> None:
    outcome = deliver_within(throw(thrown), MESSAGE, 60_000)
    assert outcome == Failed(f"Provider call failed: {type(thrown).__name__}")


def test_a_kill_passes_through() -> None:
    with pytest.raises(gevent.GreenletExit):
        deliver_within(throw(gevent.GreenletExit()), MESSAGE, 1_000)


def test_nothing_is_called_inside_an_open_unit_of_work() -> None:
    provider = Acting(lambda: Delivered("m"))
    with UnitOfWork(sessionmaker()), pytest.raises(OpenUnitOfWorkError):
        deliver_within(provider, MESSAGE, 1_000)
    assert provider.calls == 0


def test_a_unit_of_work_within_another_leaves_the_outer_one_guarded() -> None:
    provider = Acting(lambda: Delivered("m"))
    with UnitOfWork(sessionmaker()):
        with UnitOfWork(sessionmaker()):
            pass
        with pytest.raises(OpenUnitOfWorkError):
            deliver_within(provider, MESSAGE, 1_000)


@pytest.mark.parametrize("ends_with", [None, ValueError(), gevent.GreenletExit()])
def test_a_closed_unit_of_work_is_no_hindrance_however_it_ended(
    ends_with: BaseException | None,
) -> None:
    try:
        with UnitOfWork(sessionmaker()):
            if ends_with:
                raise ends_with
    except (ValueError, gevent.GreenletExit):
        pass
    assert deliver_within(Acting(lambda: Delivered("m")), MESSAGE, 1_000) == Delivered("m")


def test_a_unit_of_work_in_another_greenlet_is_no_hindrance() -> None:
    with UnitOfWork(sessionmaker()):
        call = gevent.spawn(deliver_within, Acting(lambda: Delivered("m")), MESSAGE, 1_000)
        assert call.get(timeout=5) == Delivered("m")
