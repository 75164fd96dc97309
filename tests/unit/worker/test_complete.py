"""The completion buffer: size, age, put back, push back, and the losers it reports."""

from contextlib import suppress
from dataclasses import replace

import gevent
import pytest
from sqlalchemy.exc import DBAPIError

from notify_queue.delivery.lease import Lease
from notify_queue.domain.attempt import Ended, Release, Result, Retry, Verdict
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Failed, NotSent, Outcome, Refused
from notify_queue.worker.complete import FLUSH_AGE_S, FLUSH_SIZE, LIMIT, CompletionBuffer
from tests.unit.worker.conftest import ManualClock, Said
from tests.unit.worker.in_memory import InMemoryQueue, a_result


class Buffer(CompletionBuffer):
    """The buffer on a queue in memory, which counts how often it woke a loop."""

    def __init__(self, queue: InMemoryQueue, clock: ManualClock, *, limited: bool) -> None:
        super().__init__(
            queue,
            "worker-1",
            limited=limited,
            wake=self._count,
            wake_poll=self._count_poll,
            wake_webhooks=self._count_webhooks,
        )
        self.wakes = 0
        self.polls = 0
        self.webhooks = 0
        self.lease = Lease(clock.now + 60)

    def _count(self) -> None:
        self.wakes += 1

    def _count_poll(self) -> None:
        self.polls += 1

    def _count_webhooks(self) -> None:
        self.webhooks += 1

    def take(self, count: int = 1) -> list[Result]:
        """Put new results in and return them."""
        results = [a_result() for _ in range(count)]
        for result in results:
            self.add(result, self.lease)
        return results


@pytest.fixture
def buffer(queue: InMemoryQueue, clock: ManualClock) -> Buffer:
    return Buffer(queue, clock, limited=False)


def test_an_empty_buffer_writes_nothing(buffer: Buffer, queue: InMemoryQueue) -> None:
    assert buffer.run_once() > 1
    assert queue.commits == 0


def test_a_young_result_waits_for_company(
    buffer: Buffer, queue: InMemoryQueue, clock: ManualClock
) -> None:
    buffer.take()
    clock.advance(FLUSH_AGE_S / 4)
    assert buffer.run_once() == pytest.approx(FLUSH_AGE_S * 3 / 4)
    assert queue.commits == 0


def test_results_are_written_together_once_the_oldest_has_its_age(
    buffer: Buffer, queue: InMemoryQueue, clock: ManualClock
) -> None:
    results = buffer.take()
    clock.advance(FLUSH_AGE_S * 3 / 4)
    results += buffer.take(2)
    clock.advance(FLUSH_AGE_S / 2)
    buffer.run_once()
    assert queue.recorded == [results]
    assert len(buffer) == 0


def test_a_full_statement_is_written_at_whatever_age(buffer: Buffer, queue: InMemoryQueue) -> None:
    results = buffer.take(FLUSH_SIZE)
    buffer.run_once()
    assert queue.recorded == [results]


def test_more_than_one_statement_holds_leaves_the_rest_for_a_pass_that_follows_at_once(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    results = buffer.take(FLUSH_SIZE + 1)
    assert buffer.run_once() == 0
    assert queue.recorded == [results[:FLUSH_SIZE]]
    assert len(buffer) == 1


def test_the_first_result_and_the_one_that_fills_a_statement_wake_the_loop(buffer: Buffer) -> None:
    buffer.take(FLUSH_SIZE - 1)
    assert buffer.wakes == 1
    buffer.take(2)
    assert buffer.wakes == 2


def test_what_an_absent_database_did_not_take_goes_in_front_again(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    results = buffer.take(3)
    queue.fails_with = ConnectionError("the database is away")
    with pytest.raises(ConnectionError):
        buffer.flush()
    assert queue.recorded == []
    assert len(buffer) == 3
    queue.fails_with = None
    results += buffer.take()
    buffer.flush()
    assert queue.recorded == [results]


def test_a_result_that_the_database_refuses_holds_nobody_up(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    stuck, *others = buffer.take(3)
    queue.refuses = {stuck.claim.job_id}
    with pytest.raises(DBAPIError):
        buffer.flush()
    late = buffer.take(2)
    buffer.flush()
    for _ in range(4):
        with suppress(DBAPIError):
            buffer.retry_once()
    assert queue.recorded == [late, [others[0]], [others[1]]]
    assert len(buffer) == 1


def test_with_nothing_to_go_alone_there_is_no_hurry(buffer: Buffer) -> None:
    buffer.take()
    assert buffer.retry_once() is None


def test_what_is_on_its_way_is_not_recorded_yet(buffer: Buffer, queue: InMemoryQueue) -> None:
    buffer.take(2)
    seen: list[int] = []
    queue.on_commit = lambda: seen.append(len(buffer))
    buffer.flush()
    assert seen == [2]
    assert len(buffer) == 0


def test_a_job_that_was_put_back_wakes_the_claiming_loop(buffer: Buffer) -> None:
    """It has a due time now that the loop did not know when it went to sleep."""
    buffer.take()
    buffer.flush()
    assert buffer.polls == 0
    retried = replace(a_result(), outcome=Failed("later"), verdict=Retry(750, "later"))
    buffer.add(retried, buffer.lease)
    buffer.flush()
    assert buffer.polls == 1


def test_a_buffer_that_was_full_wakes_the_claiming_loop(buffer: Buffer) -> None:
    buffer.take(LIMIT)
    buffer.flush()
    assert buffer.polls == 1
    buffer.flush()
    assert buffer.polls == 1


def test_a_flush_that_is_killed_puts_everything_back_too(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    results = buffer.take(2)
    queue.fails_with = gevent.GreenletExit()
    with pytest.raises(gevent.GreenletExit):
        buffer.flush()
    queue.fails_with = None
    buffer.flush()
    assert queue.recorded == [results]


def test_a_result_that_comes_in_during_a_flush_is_written_by_the_next(
    buffer: Buffer, queue: InMemoryQueue, clock: ManualClock
) -> None:
    first = buffer.take()
    late: list[Result] = []
    queue.on_commit = lambda: late.extend(buffer.take())
    buffer.flush()
    queue.on_commit = lambda: None
    assert buffer.wakes == 2
    clock.advance(2 * FLUSH_AGE_S)
    buffer.run_once()
    assert queue.recorded == [first, late]


def test_a_full_buffer_says_so_until_it_could_write(buffer: Buffer, queue: InMemoryQueue) -> None:
    queue.fails_with = ConnectionError("the database is away")
    full = []
    for count in (LIMIT - 1, 1):
        buffer.take(count)
        full.append(buffer.full)
    with pytest.raises(ConnectionError):
        buffer.flush()
    full.append(buffer.full)
    queue.fails_with = None
    buffer.flush()
    full.append(buffer.full)
    assert full == [False, True, True, False]


def test_flushing_until_it_is_empty_drains_it(buffer: Buffer, queue: InMemoryQueue) -> None:
    results = buffer.take(2 * FLUSH_SIZE + 3)
    while len(buffer):
        buffer.flush()
    assert [each for batch in queue.recorded for each in batch] == results


def test_after_a_failed_flush_results_past_their_lease_are_dropped_and_reported(
    buffer: Buffer, queue: InMemoryQueue, clock: ManualClock, said: Said
) -> None:
    (lost,) = buffer.take()
    kept = a_result()
    buffer.add(kept, Lease(clock.now + 120))
    clock.advance(61)
    queue.fails_with = ConnectionError("the database is away")
    with pytest.raises(ConnectionError):
        buffer.flush()
    queue.fails_with = None
    buffer.flush()
    assert queue.recorded == [[kept]]
    (record,) = said("job.claim_lost")
    assert record["jobId"] == str(lost.claim.job_id)


def test_a_result_past_its_lease_is_still_offered_once(
    buffer: Buffer, queue: InMemoryQueue, clock: ManualClock
) -> None:
    """The fence in the database decides: nobody may have claimed the job in between."""
    results = buffer.take()
    clock.advance(61)
    buffer.flush()
    assert queue.recorded == [results]


def test_a_lost_claim_is_reported_and_does_not_hold_the_others_up(
    buffer: Buffer, queue: InMemoryQueue, said: Said
) -> None:
    lost, kept = buffer.take(2)
    queue.stale = {lost.claim.job_id}
    buffer.flush()
    assert queue.recorded == [[kept]]
    assert len(buffer) == 0
    (record,) = said("job.claim_lost")
    assert record["level"] == "INFO", "the notification did go out"
    assert record["jobId"] == str(lost.claim.job_id)
    assert record["stage"] == "complete"
    assert [each["jobId"] for each in said("job.sent")] == [str(kept.claim.job_id)]


SENT = (Delivered("m", duplicate=True), Ended(Status.SENT))
REFUSED = (Refused("no such mailbox"), Ended(Status.FAILED, "no such mailbox"))
GIVEN_UP = (Failed("try later"), Ended(Status.DEAD_LETTERED, "try later"))
RETRIED = (Failed("try later"), Retry(750, "try later"))


@pytest.mark.parametrize(
    ("came_to", "event", "fields"),
    [
        (SENT, "job.sent", {"level": "INFO", "duplicate": True}),
        (REFUSED, "job.fail", {"level": "WARNING", "error": "no such mailbox"}),
        (GIVEN_UP, "job.dead_letter", {"level": "WARNING", "error": "try later"}),
        (RETRIED, "job.retry", {"level": "WARNING", "error": "try later", "retryInMs": 750}),
    ],
)
def test_every_verdict_has_its_event_with_its_fields(
    buffer: Buffer,
    said: Said,
    came_to: tuple[Outcome, Verdict],
    event: str,
    fields: dict[str, object],
) -> None:
    outcome, verdict = came_to
    result = replace(a_result(), outcome=outcome, verdict=verdict)
    buffer.add(result, buffer.lease)
    buffer.flush()
    (record,) = said(event)
    expected = {
        "workerId": "worker-1",
        "jobId": str(result.claim.job_id),
        "attempt": 1,
        "durationMs": 12,
        **fields,
    }
    assert record.items() >= expected.items()


def test_nothing_is_reported_before_it_is_committed(
    buffer: Buffer, queue: InMemoryQueue, said: Said
) -> None:
    buffer.take()
    before: list[object] = []
    queue.on_commit = lambda: before.extend(said("job.sent"))
    buffer.flush()
    assert before == []
    assert len(said("job.sent")) == 1


def test_a_job_that_cannot_be_handed_back_any_more_is_reported_as_lost(
    buffer: Buffer, queue: InMemoryQueue, said: Said
) -> None:
    result = replace(a_result(), outcome=NotSent(), verdict=Release())
    queue.stale = {result.claim.job_id}
    buffer.add(result, buffer.lease)
    buffer.flush()
    assert said("job.released") == []
    [line] = said("job.claim_lost")
    assert (line["level"], line["jobId"]) == ("WARNING", str(result.claim.job_id))
    assert buffer.released == 0


def test_a_result_that_goes_alone_leaves_the_buffer_settled(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    [refused] = buffer.take()
    before = buffer.settled
    queue.refuses = {refused.claim.job_id}
    with suppress(DBAPIError):
        buffer.flush()
    assert (before, len(buffer)) == (False, 1)
    assert buffer.settled


@pytest.mark.parametrize("limited", [True, False])
def test_what_is_recorded_takes_slots_if_there_is_a_limit(
    queue: InMemoryQueue, clock: ManualClock, *, limited: bool
) -> None:
    buffer = Buffer(queue, clock, limited=limited)
    buffer.take(2)
    buffer.flush()
    assert queue.limited == [limited]


@pytest.mark.parametrize(
    ("came_to", "woken"), [(SENT, 1), (REFUSED, 1), (GIVEN_UP, 1), (RETRIED, 0)]
)
def test_a_job_that_has_ended_wakes_the_webhooks_and_one_that_has_not_does_not(
    buffer: Buffer, came_to: tuple[Outcome, Verdict], woken: int
) -> None:
    """Its event was born with its end, and nobody else may know that it is due."""
    outcome, verdict = came_to
    buffer.add(replace(a_result(), outcome=outcome, verdict=verdict), buffer.lease)
    buffer.add(replace(a_result(), outcome=NotSent(), verdict=Release()), buffer.lease)
    buffer.flush()
    assert buffer.webhooks == woken


def test_the_webhooks_are_woken_once_for_each_batch_and_after_its_commit(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    buffer.take(3)
    before: list[int] = []
    queue.on_commit = lambda: before.append(buffer.webhooks)
    buffer.flush()
    assert (before, buffer.webhooks) == ([0], 1)


def test_an_end_that_was_not_recorded_wakes_no_webhooks(
    buffer: Buffer, queue: InMemoryQueue
) -> None:
    buffer.take()
    queue.fails_with = ConnectionError("the database is away")
    with pytest.raises(ConnectionError):
        buffer.flush()
    assert buffer.webhooks == 0
