"""A pass takes what can be sent now and sends all of it, within its bounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import gevent
import pytest
from gevent.event import Event

from notify_queue.domain.webhook_event import Answer, Answered, GivenUp, NoAnswer, Received
from notify_queue.webhooks import record
from notify_queue.webhooks.dispatch import PROBE_S, Dispatcher
from notify_queue.webhooks.record import RecordPosted
from notify_queue.webhooks.send import SendEvent
from notify_queue.webhooks.take import TakeDueEvents
from tests.unit.webhooks.in_memory import (
    BACKOFF,
    LEASE_S,
    MAX_ATTEMPTS,
    InMemoryOutbox,
    ScriptedPost,
    a_due_event,
)
from tests.unit.worker.conftest import ManualClock, Said

DOWN = NoAnswer("ECONNDOWN")


@dataclass
class Gate:
    """A receiver's answer that waits until the test lets it out."""

    opened: Event = field(default_factory=Event)
    inside: int = 0

    def __call__(self) -> Answer:
        self.inside += 1
        self.opened.wait()
        self.inside -= 1
        return Answered(200)


@dataclass
class Webhooks:
    """The dispatcher of a worker, on an outbox in memory."""

    outbox: InMemoryOutbox
    act: Callable[[], Answer]
    concurrency: int = 4
    wakes: int = 0

    def __post_init__(self) -> None:
        self.post = ScriptedPost(self.act)
        self.dispatcher = Dispatcher(
            TakeDueEvents(self.outbox, LEASE_S, MAX_ATTEMPTS),
            SendEvent(self.post, (), LEASE_S, MAX_ATTEMPTS, BACKOFF, lambda: 0),
            RecordPosted(self.outbox),
            worker_id="worker-1",
            concurrency=self.concurrency,
            wake=self._count,
        )

    def _count(self) -> None:
        self.wakes += 1

    def run_once(self) -> float | None:
        """Make a pass and let what it started run until it waits."""
        next_s = self.dispatcher.run_once()
        gevent.idle()
        return next_s


@pytest.fixture
def gate() -> Gate:
    return Gate()


def in_turn(answers: Sequence[Answer]) -> Callable[[], Answer]:
    """Answer one POST after the other; the last answer is for all that follow."""
    left = list(answers)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_it_sends_everything_that_it_takes(outbox: InMemoryOutbox, gate: Gate) -> None:
    outbox.add(3)
    outbox.next_due_s = 7.0
    webhooks = Webhooks(outbox, gate)
    assert webhooks.run_once() == 7
    assert gate.inside == 3
    gate.opened.set()
    assert webhooks.dispatcher.drain(10) == 0
    assert [each.verdict for each in outbox.written] == [Received()] * 3


def test_it_takes_no_more_than_it_can_send_and_asks_for_nothing_without_room(
    outbox: InMemoryOutbox, gate: Gate
) -> None:
    outbox.add(10)
    webhooks = Webhooks(outbox, gate, concurrency=4)
    assert [webhooks.run_once() for _ in range(3)] == [None, None, None]
    assert outbox.asked_for == [4]
    assert gate.inside == 4


def test_a_place_that_is_freed_is_filled_while_more_waits(
    outbox: InMemoryOutbox, gate: Gate
) -> None:
    outbox.add(7)
    webhooks = Webhooks(outbox, gate, concurrency=4)
    webhooks.run_once()
    assert webhooks.wakes == 0
    gate.opened.set()
    webhooks.dispatcher.drain(10)
    assert webhooks.wakes == 4
    webhooks.run_once()
    assert outbox.asked_for == [4, 4]
    assert len(outbox.written) == 7


def test_a_pass_that_found_no_room_is_made_up_for(outbox: InMemoryOutbox, gate: Gate) -> None:
    """Trouble has taken the room that was left, and what came since nobody has looked for."""
    answers: list[Callable[[], Answer]] = [lambda: DOWN, gate, gate]

    def act() -> Answer:
        return answers.pop(0)()

    outbox.add(3)
    webhooks = Webhooks(outbox, act, concurrency=4)
    webhooks.run_once()
    webhooks.run_once()
    # By the one that is to be tried again.
    assert (outbox.asked_for, gate.inside, webhooks.wakes) == ([4], 2, 1)
    gate.opened.set()
    webhooks.dispatcher.drain(10)
    assert webhooks.wakes == 3


def test_with_nothing_waiting_a_freed_place_wakes_nobody(
    outbox: InMemoryOutbox, gate: Gate
) -> None:
    outbox.add(3)
    webhooks = Webhooks(outbox, gate, concurrency=4)
    webhooks.run_once()
    gate.opened.set()
    webhooks.dispatcher.drain(10)
    assert webhooks.wakes == 0


@pytest.mark.parametrize("trouble", [DOWN, Answered(503), Answered(429)])
def test_a_receiver_in_trouble_is_asked_by_one_event_at_a_time_until_it_answers(
    outbox: InMemoryOutbox, trouble: Answer, clock: ManualClock
) -> None:
    outbox.add(100)
    webhooks = Webhooks(outbox, in_turn([trouble] * 10 + [Answered(200)]), concurrency=8)
    for _ in range(8):
        webhooks.run_once()
        clock.advance(PROBE_S)
    assert outbox.asked_for == [8, 1, 1, 1, 2, 4, 8, 8]


def test_a_receiver_that_refuses_at_once_is_not_asked_again_at_once(
    outbox: InMemoryOutbox, clock: ManualClock
) -> None:
    outbox.add(100)
    webhooks = Webhooks(outbox, in_turn([DOWN, DOWN, Answered(200)]), concurrency=1)
    # Whoever wakes the loop in between.
    assert [webhooks.run_once() for _ in range(3)] == [
        None,
        pytest.approx(PROBE_S),
        pytest.approx(PROBE_S),
    ]
    clock.advance(PROBE_S)
    webhooks.run_once()
    clock.advance(PROBE_S)
    # Once it has answered there is nothing to wait for.
    for _ in range(3):
        webhooks.run_once()
    assert outbox.asked_for == [1] * 5


@pytest.mark.parametrize("answer", [Answered(400), Answered(302), Answered(410)])
def test_an_event_that_is_disliked_does_not_slow_the_others(
    outbox: InMemoryOutbox, answer: Answer
) -> None:
    outbox.add(100)
    webhooks = Webhooks(outbox, lambda: answer, concurrency=8)
    for _ in range(3):
        webhooks.run_once()
    assert outbox.asked_for == [8, 8, 8]


def test_the_fault_of_one_event_is_told_and_reaches_no_other(
    outbox: InMemoryOutbox, said: Said
) -> None:
    faults = [ValueError("whsec_secret")]

    def act() -> Answer:
        if faults:
            raise faults.pop()
        return Answered(200)

    outbox.add(4)
    webhooks = Webhooks(outbox, act, concurrency=4)
    webhooks.run_once()
    assert len(outbox.written) == 3
    (line,) = said("webhook.dispatch_failed")
    assert (line["level"], line["workerId"]) == ("ERROR", "worker-1")
    assert "whsec_secret" not in str(line)
    # Its place is free again.
    outbox.add(4)
    webhooks.run_once()
    assert outbox.asked_for == [4, 4]
    assert webhooks.dispatcher.drain(0) == 0


def test_an_event_whose_lease_is_over_before_it_is_sent_is_left_to_others(
    outbox: InMemoryOutbox, clock: ManualClock
) -> None:
    outbox.add(1)
    webhooks = Webhooks(outbox, lambda: Answered(200))
    webhooks.dispatcher.run_once()
    clock.advance(LEASE_S)
    assert webhooks.dispatcher.drain(10) == 0
    assert webhooks.post.sent == []
    assert outbox.offered == []


def test_when_all_that_was_taken_was_given_up_the_next_pass_follows_at_once(
    outbox: InMemoryOutbox,
) -> None:
    """Nothing is on its way, so nobody else would start it."""
    outbox.due = [a_due_event(attempts=MAX_ATTEMPTS) for _ in range(5)]
    outbox.next_due_s = 7.0
    webhooks = Webhooks(outbox, lambda: Answered(200), concurrency=4)
    assert [webhooks.run_once() for _ in range(2)] == [0, 7]
    assert len(outbox.given_up) == 5
    assert webhooks.post.sent == []


def test_places_of_the_given_up_are_filled_though_others_are_on_their_way(
    outbox: InMemoryOutbox, gate: Gate
) -> None:
    outbox.due = [a_due_event(attempts=MAX_ATTEMPTS) for _ in range(3)]
    outbox.add(4)
    outbox.next_due_s = 7.0
    webhooks = Webhooks(outbox, gate, concurrency=4)
    assert [webhooks.run_once() for _ in range(2)] == [0, None]
    assert (outbox.asked_for, gate.inside) == ([4, 3], 4)


@pytest.mark.parametrize(
    ("answer", "wakes"), [(DOWN, 1), (Answered(400), 1), (Answered(200), 0)], ids=str
)
def test_an_event_that_is_to_be_tried_again_has_its_new_time_waited_for(
    outbox: InMemoryOutbox, answer: Answer, wakes: int
) -> None:
    outbox.add(1)
    webhooks = Webhooks(outbox, lambda: answer)
    webhooks.run_once()
    webhooks.dispatcher.drain(10)
    assert (len(outbox.written), webhooks.wakes) == (1, wakes)


def test_a_result_that_cannot_be_recorded_yet_waits_outside_of_its_place(
    outbox: InMemoryOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_AGAIN_S", 60)
    held, *others = outbox.add(3)
    outbox.held = {held.event.event_id}
    webhooks = Webhooks(outbox, lambda: Answered(200), concurrency=1)
    for _ in range(3):
        webhooks.run_once()
    assert [each.dispatch.event for each in outbox.written] == [each.event for each in others]
    # Each place that became free was told of, once.
    assert webhooks.wakes == 3
    # It is not forgotten by whoever stops the worker.
    assert webhooks.dispatcher.drain(0.001) == 1


def test_an_event_that_is_given_up_wakes_nobody(outbox: InMemoryOutbox) -> None:
    outbox.due = [a_due_event(attempts=MAX_ATTEMPTS - 1)]
    webhooks = Webhooks(outbox, lambda: DOWN)
    webhooks.run_once()
    webhooks.dispatcher.drain(10)
    assert [each.verdict for each in outbox.written] == [GivenUp("ECONNDOWN")]
    assert webhooks.wakes == 0


def test_draining_waits_for_what_is_on_its_way_and_counts_what_is_left(
    outbox: InMemoryOutbox, gate: Gate
) -> None:
    outbox.add(3)
    webhooks = Webhooks(outbox, gate)
    webhooks.run_once()
    assert webhooks.dispatcher.drain(0.001) == 3
    gate.opened.set()
    assert webhooks.dispatcher.drain(10) == 0
    assert len(outbox.written) == 3


def test_a_failed_look_at_the_outbox_leaves_every_place_free(outbox: InMemoryOutbox) -> None:
    outbox.add(1)

    def away() -> None:
        raise ConnectionError("the database is away")

    outbox.on_commit = away
    webhooks = Webhooks(outbox, lambda: Answered(200), concurrency=4)
    with pytest.raises(ConnectionError):
        webhooks.run_once()
    with pytest.raises(ConnectionError):
        webhooks.run_once()
    assert outbox.asked_for == [4, 4]
