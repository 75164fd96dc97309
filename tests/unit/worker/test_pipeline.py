"""A pass claims what can start now and starts all of it, within its bounds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import gevent
import pytest
from gevent.event import Event

from notify_queue.delivery.lease import Lease
from notify_queue.delivery.provider import Message
from notify_queue.domain.attempt import Release
from notify_queue.domain.job import Channel
from notify_queue.domain.outcome import Delivered, Outcome
from notify_queue.domain.retry import Backoff
from notify_queue.worker.claim import ClaimDueJobs
from notify_queue.worker.complete import LIMIT, CompletionBuffer
from notify_queue.worker.deliver import DeliverJob
from notify_queue.worker.pipeline import ISOLATE_AFTER_S, UNRECORDED_S, Pipeline
from tests.unit.worker.conftest import ManualClock, Said
from tests.unit.worker.in_memory import InMemoryQueue, ScriptedProvider, a_result


@dataclass
class Gate:
    """A provider's answer that waits until the test lets it out."""

    opened: Event = field(default_factory=Event)
    inside: int = 0
    most_inside: int = 0

    def __call__(self, message: Message) -> Outcome:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.opened.wait()
        self.inside -= 1
        return Delivered(message.delivery_key)


@dataclass
class Worker:
    """A pipeline on a queue in memory."""

    queue: InMemoryQueue
    concurrency: int = 4
    batch_size: int = 100
    act: Callable[[Message], Outcome] = field(default_factory=Gate)
    wakes: int = 0

    def __post_init__(self) -> None:
        self.provider = ScriptedProvider(self.act)
        self.completions = CompletionBuffer(
            self.queue,
            "worker-1",
            limited=False,
            wake=lambda: None,
            wake_poll=lambda: None,
            wake_webhooks=lambda: None,
        )
        self.pipeline = Pipeline(
            ClaimDueJobs(self.queue, "worker-1", 3_600, 0.1, timedelta(seconds=300), uuid4, None),
            DeliverJob(
                {Channel.EMAIL: self.provider},
                60_000,
                Backoff(1_000, 60_000),
                "worker-1",
                random=lambda: 0.5,
            ),
            self.completions,
            worker_id="worker-1",
            concurrency=self.concurrency,
            batch_size=self.batch_size,
            wake=self._count,
        )

    def _count(self) -> None:
        self.wakes += 1

    def run_once(self) -> float | None:
        """Make a pass and let what it started run until it waits."""
        next_s = self.pipeline.run_once()
        gevent.idle()
        return next_s


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_it_starts_everything_that_it_claims(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(3)
    queue.next_due_s = 7.0
    worker = Worker(queue, act=gate)
    assert worker.run_once() == 7
    assert gate.inside == 3


def test_it_asks_for_no_more_than_it_can_start(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(10)
    worker = Worker(queue, concurrency=4, act=gate)
    worker.run_once()
    worker.run_once()
    assert queue.asked_for == [4]
    assert gate.inside == 4


def test_it_asks_for_no_more_than_a_batch_at_once(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(10)
    worker = Worker(queue, concurrency=8, batch_size=3, act=gate)
    assert worker.run_once() == 0
    for _ in range(2):
        worker.run_once()
    assert queue.asked_for == [3, 3, 2]
    assert gate.inside == 8


def test_it_never_runs_more_than_its_concurrency_however_the_slots_free(
    queue: InMemoryQueue, gate: Gate
) -> None:
    queue.add(20)
    worker = Worker(queue, concurrency=3, act=gate)
    while queue.waiting:
        worker.run_once()
        gate.opened.set()
        gate.opened.clear()
        gevent.idle()
    gate.opened.set()
    assert worker.pipeline.drain(5) == 0
    assert gate.most_inside == 3
    assert len(worker.provider.messages) == len(worker.completions) == 20


def test_with_every_slot_taken_it_waits_to_be_woken(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(4)
    worker = Worker(queue, concurrency=4, act=gate)
    assert worker.run_once() is None
    assert worker.run_once() is None
    assert len(queue.asked_for) == 1


def test_a_freed_slot_wakes_it_while_more_waits(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(5)
    worker = Worker(queue, concurrency=4, act=gate)
    worker.run_once()
    assert worker.wakes == 0
    gate.opened.set()
    worker.pipeline.drain(5)
    assert worker.wakes == 4


def test_a_freed_slot_wakes_nobody_while_nothing_waits(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(3)
    worker = Worker(queue, concurrency=4, act=gate)
    worker.run_once()
    gate.opened.set()
    worker.pipeline.drain(5)
    assert worker.wakes == 0


def test_slots_that_free_close_together_are_filled_by_one_claim(queue: InMemoryQueue) -> None:
    gates = [Gate(), Gate(), Gate(), Gate()]
    left = iter(gates)

    def next_gate(message: Message) -> Outcome:
        return next(left)(message)

    queue.add(4)
    worker = Worker(queue, concurrency=2, act=next_gate)
    worker.run_once()
    gates[0].opened.set()
    gevent.idle()
    # The other one frees while the pass waits for company.
    gevent.spawn(gates[1].opened.set)
    worker.run_once()
    assert queue.asked_for == [2, 2]


def test_a_job_that_fails_in_an_unforeseen_way_does_not_reach_the_others(
    queue: InMemoryQueue, said: Said
) -> None:
    queue.add(3)
    bad = str(queue.waiting[1])
    worker = Worker(queue)

    def answer(message: Message) -> Outcome:
        no_outcome: Any = None
        return no_outcome if message.delivery_key == bad else Delivered(message.delivery_key)

    worker.provider.act = answer
    worker.run_once()
    assert worker.pipeline.drain(5) == 0
    assert len(worker.completions) == 2
    (record,) = said("job.processing_error")
    assert record["level"] == "ERROR"
    assert record["jobId"] == bad
    assert record["workerId"] == "worker-1"
    queue.add(4)
    worker.run_once()
    assert queue.asked_for == [4, 4]


def test_a_full_buffer_holds_claiming_back(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(1)
    worker = Worker(queue, act=gate)
    for _ in range(LIMIT):
        worker.completions.add(a_result(), Lease(float("inf")))
    assert worker.run_once() is None
    assert queue.asked_for == []
    worker.completions.flush()
    worker.run_once()
    assert gate.inside == 1


def test_while_a_full_buffer_holds_it_back_an_attempt_that_ends_wakes_it(
    queue: InMemoryQueue, gate: Gate
) -> None:
    queue.add(1)
    worker = Worker(queue, act=gate)
    worker.run_once()
    for _ in range(LIMIT):
        worker.completions.add(a_result(), Lease(float("inf")))
    worker.run_once()
    gate.opened.set()
    worker.pipeline.drain(5)
    assert worker.wakes == 1


def test_a_job_whose_lease_is_too_short_frees_its_slot_and_goes_back(
    queue: InMemoryQueue,
) -> None:
    queue.add(1)
    worker = Worker(queue)
    worker.pipeline._claim = ClaimDueJobs(
        queue, "worker-1", 1, 0.1, timedelta(seconds=300), uuid4, None
    )
    worker.run_once()
    assert worker.pipeline.drain(5) == 0
    assert worker.provider.messages == []
    worker.completions.flush()
    [[result]] = queue.recorded
    assert result.verdict == Release()


def test_draining_waits_for_what_runs(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(3)
    worker = Worker(queue, act=gate)
    worker.run_once()
    gevent.spawn(gate.opened.set)
    assert worker.pipeline.drain(5) == 0
    assert len(worker.completions) == 3


def test_draining_ends_at_its_deadline_and_says_what_still_runs(
    queue: InMemoryQueue, gate: Gate
) -> None:
    queue.add(3)
    worker = Worker(queue, act=gate)
    worker.run_once()
    assert worker.pipeline.drain(0.01) == 3
    gate.opened.set()
    assert worker.pipeline.drain(5) == 0


def test_a_claim_that_fails_reaches_the_loop_and_takes_no_slot(queue: InMemoryQueue) -> None:
    queue.add(1)
    queue.fails_with = ConnectionError("the database is away")
    worker = Worker(queue, act=Gate())
    with pytest.raises(ConnectionError):
        worker.run_once()
    queue.fails_with = None
    queue.add(5)
    worker.run_once()
    assert queue.asked_for == [4, 4]


def test_what_a_claim_still_brings_after_the_stop_goes_back_untried(
    queue: InMemoryQueue, gate: Gate, said: Said
) -> None:
    queue.add(3)
    claimed = list(queue.waiting)
    worker = Worker(queue, act=gate)
    # The signal comes while the claim is on its way.
    queue.on_commit = worker.pipeline.stop
    worker.run_once()
    assert worker.provider.messages == []
    worker.completions.flush()
    [recorded] = queue.recorded
    assert [each.claim.job_id for each in recorded] == claimed
    assert {each.verdict for each in recorded} == {Release()}
    assert [line["jobId"] for line in said("job.released")] == [str(each) for each in claimed]
    assert worker.completions.released == 3


def test_a_suspect_is_tried_alone(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(2)
    queue.suspects = set(queue.waiting)
    worker = Worker(queue, act=gate)
    assert worker.run_once() is None
    queue.add(1)
    assert worker.run_once() is None
    assert len(worker.provider.messages) == 1

    gate.opened.set()
    gevent.idle()
    assert worker.wakes == 1


def test_other_jobs_go_before_suspects(queue: InMemoryQueue) -> None:
    queue.add(1)
    queue.suspects = set(queue.waiting)
    queue.add(2)
    first, second = Gate(), Gate()
    gates = iter([first, first, second])

    def through_the_next(message: Message) -> Outcome:
        return next(gates)(message)

    worker = Worker(queue, act=through_the_next)
    worker.run_once()
    worker.run_once()
    assert first.inside == 2
    first.opened.set()
    gevent.idle()
    # What was delivered is recorded before the suspect can do harm.
    worker.run_once()
    assert second.inside == 0
    worker.completions.flush()
    worker.run_once()
    assert second.inside == 1


def test_a_worker_that_is_never_idle_makes_itself_idle_for_a_suspect(
    queue: InMemoryQueue, clock: ManualClock
) -> None:
    first, second = Gate(), Gate()
    gates = iter([first, second, first])

    def through_the_next(message: Message) -> Outcome:
        return next(gates)(message)

    worker = Worker(queue, act=through_the_next)
    queue.add(1)
    worker.run_once()
    queue.add(1)
    queue.suspects = set(queue.waiting)
    worker.run_once()
    clock.advance(ISOLATE_AFTER_S + 1)
    worker.run_once()
    queue.add(1)
    assert worker.run_once() is None
    assert (first.inside, len(worker.provider.messages)) == (1, 1)

    first.opened.set()
    gevent.idle()
    assert worker.wakes == 1
    assert worker.run_once() == UNRECORDED_S
    worker.completions.flush()
    assert worker.run_once() == 0
    assert worker.run_once() is None
    assert (second.inside, len(worker.provider.messages)) == (1, 2)

    second.opened.set()
    gevent.idle()
    worker.run_once()
    assert len(worker.provider.messages) == 3


def test_a_worker_that_stops_tries_no_suspect(queue: InMemoryQueue, gate: Gate) -> None:
    queue.add(1)
    queue.suspects = set(queue.waiting)
    worker = Worker(queue, act=gate)
    worker.pipeline.stop()
    worker.run_once()
    assert gate.inside == 0
    assert len(queue.waiting) == 1


def test_a_busy_worker_looks_for_a_suspect_once_a_minute(
    queue: InMemoryQueue, gate: Gate, clock: ManualClock
) -> None:
    queue.add(1)
    worker = Worker(queue, act=gate)
    for _ in range(3):
        clock.advance(ISOLATE_AFTER_S + 1)
        for _ in range(5):
            worker.run_once()
    assert queue.looks_for_suspects == 3


def test_one_suspect_comes_soon_after_the_other(queue: InMemoryQueue) -> None:
    worker = Worker(queue, act=lambda message: Delivered(message.delivery_key))
    queue.add(2)
    queue.suspects = set(queue.waiting)
    worker.run_once()
    assert worker.run_once() == UNRECORDED_S
    worker.completions.flush()
    worker.run_once()
    assert queue.waiting == []
