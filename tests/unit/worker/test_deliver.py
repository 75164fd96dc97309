"""One attempt: the lease is asked first, every end is an outcome, and its words are cleaned."""

import gevent
import pytest
from gevent.event import Event

from notify_queue.delivery.lease import Lease
from notify_queue.delivery.provider import Message
from notify_queue.domain.attempt import Ended, Release, Retry
from notify_queue.domain.job import Channel
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome, Refused
from notify_queue.domain.retry import Backoff
from notify_queue.persistence.unit_of_work import OpenUnitOfWorkError
from notify_queue.worker.deliver import RECORDING_MARGIN_MS, DeliverJob
from tests.unit.worker.conftest import ManualClock, Said
from tests.unit.worker.in_memory import InMemoryQueue, ScriptedProvider, a_claim

TIMEOUT_MS = 2_000


def step(provider: ScriptedProvider, timeout_ms: int = TIMEOUT_MS) -> DeliverJob:
    return DeliverJob(
        providers={Channel.EMAIL: provider},
        timeout_ms=timeout_ms,
        backoff=Backoff(base_ms=1_000, max_ms=60_000),
        worker_id="worker-1",
        random=lambda: 0.5,
    )


@pytest.fixture
def lease(clock: ManualClock) -> Lease:
    """A lease with all the room in the world."""
    return Lease(clock.now + 3_600)


def test_the_provider_gets_the_message_under_the_jobs_own_key(lease: Lease) -> None:
    provider = ScriptedProvider()
    claim = a_claim(attempt=3)
    step(provider)(claim, lease)
    key = str(claim.job_id)
    assert provider.messages == [Message(key, claim.channel, claim.recipient, claim.payload)]


def test_a_delivery_is_judged_sent(lease: Lease) -> None:
    claim = a_claim()
    result = step(ScriptedProvider())(claim, lease)
    assert result.claim is claim
    assert result.outcome == Delivered(str(claim.job_id))
    assert result.verdict == Ended(Status.SENT)
    assert 0 <= result.duration_ms < TIMEOUT_MS


def test_a_job_whose_lease_may_not_outlast_the_call_goes_back_untried(
    clock: ManualClock, said: Said
) -> None:
    provider = ScriptedProvider()
    claim = a_claim(attempt=2)
    short = Lease(clock.now + (TIMEOUT_MS + RECORDING_MARGIN_MS) / 1000)
    result = step(provider)(claim, short)
    assert (result.outcome, result.verdict) == (NotSent(), Release())
    assert provider.messages == []
    (record,) = said("worker.lease_too_short")
    named = {"workerId": "worker-1", "jobId": str(claim.job_id), "attempt": 2}
    assert record.items() >= named.items()


def test_a_lease_with_just_enough_room_is_used(clock: ManualClock) -> None:
    provider = ScriptedProvider()
    enough = Lease(clock.now + (TIMEOUT_MS + RECORDING_MARGIN_MS + 2) / 1000)
    assert step(provider)(a_claim(), enough).verdict == Ended(Status.SENT)


def test_a_call_that_never_ends_is_a_failure_that_names_the_deadline(lease: Lease) -> None:
    def hang(_: Message) -> Outcome:
        Event().wait()
        raise AssertionError("nobody sets this event")

    result = step(ScriptedProvider(hang), timeout_ms=20)(a_claim(), lease)
    assert result.outcome == Failed("Provider timed out after 20ms")
    assert result.verdict == Retry(750, "Provider timed out after 20ms")
    assert result.duration_ms >= 19


def test_an_exception_is_a_failure_that_says_its_class_and_not_its_words(lease: Lease) -> None:
    def throw(message: Message) -> Outcome:
        raise ConnectionResetError(f"while sending to {message.recipient}")

    result = step(ScriptedProvider(throw))(a_claim(), lease)
    assert result.outcome == Failed("Provider call failed: ConnectionResetError")


@pytest.mark.parametrize("kind", [Refused, Failed])
def test_the_providers_words_are_cleaned_in_the_outcome_and_in_the_verdict(
    lease: Lease, kind: type[Refused | Failed]
) -> None:
    words = "ada@example.com\x00does\r\nnot exist" + "!" * 1_000_000
    result = step(ScriptedProvider(lambda _: kind(words)))(a_claim(), lease)
    assert isinstance(result.outcome, Refused | Failed)
    assert isinstance(result.verdict, Ended | Retry)
    assert result.outcome.error.startswith("[recipient] does not exist!")
    assert len(result.outcome.error) <= 500
    assert result.verdict.error == result.outcome.error


def test_the_last_attempt_is_judged_as_the_last(lease: Lease) -> None:
    failing = ScriptedProvider(lambda _: Failed("try later"))
    result = step(failing)(a_claim(attempt=6, max_attempts=6), lease)
    assert result.verdict == Ended(Status.DEAD_LETTERED, "try later")


def test_the_drawn_number_sets_the_delay_of_a_retry(lease: Lease) -> None:
    failing = ScriptedProvider(lambda _: Failed("try later"))
    result = step(failing)(a_claim(attempt=2), lease)
    assert result.verdict == Retry(1_500, "try later")


def test_an_open_transaction_is_a_fault_of_ours_and_no_outcome(
    lease: Lease, queue: InMemoryQueue
) -> None:
    provider = ScriptedProvider()
    with queue(), pytest.raises(OpenUnitOfWorkError):
        step(provider)(a_claim(), lease)
    assert provider.messages == []


def test_a_kill_is_not_taken_for_a_failed_delivery(lease: Lease) -> None:
    begun = Event()

    def hang(_: Message) -> Outcome:
        begun.set()
        Event().wait()
        raise AssertionError("nobody sets this event")

    attempt = gevent.spawn(step(ScriptedProvider(hang)), a_claim(), lease)
    assert begun.wait(5)
    attempt.kill(timeout=5)
    assert isinstance(attempt.value, gevent.GreenletExit)
