"""What attempts came to is written together, and again and again while it may count."""

import gevent
import pytest

from notify_queue.delivery.lease import Lease
from notify_queue.domain.webhook_event import Answered, GivenUp, Posted, TryAgain
from notify_queue.webhooks.record import RecordPosted
from tests.unit.webhooks.in_memory import LEASE_S, InMemoryOutbox, a_posted
from tests.unit.worker.conftest import ManualClock, Said

RETRIED = a_posted(TryAgain(750, "HTTP 500"), Answered(500))
GAVE_UP = a_posted(GivenUp("HTTP 410"), Answered(410))


class Recording:
    """The step on an outbox in memory. A failing commit takes a second."""

    def __init__(self, outbox: InMemoryOutbox, clock: ManualClock) -> None:
        self.outbox = outbox
        self.clock = clock
        self.record = RecordPosted(outbox)
        self.tries = 0
        self.waits = 0

    def __call__(self, *posted: Posted) -> None:
        """Record these side by side and return when all are done."""
        lease = Lease(self.clock.now + LEASE_S)
        recording = [
            gevent.spawn(self.record, each, lease, waits=self._count_wait) for each in posted
        ]
        gevent.joinall(recording, timeout=10, raise_error=True)
        assert all(each.dead for each in recording)

    def _count_wait(self) -> None:
        self.waits += 1

    def fails(self, times: int) -> None:
        """Let the next commits fail."""
        self.outbox.on_commit = lambda: self._fail_until(times)

    def _fail_until(self, times: int) -> None:
        self.tries += 1
        if self.tries <= times:
            self.clock.advance(1)
            raise ConnectionError("the database is away")


@pytest.fixture
def recording(outbox: InMemoryOutbox, clock: ManualClock) -> Recording:
    return Recording(outbox, clock)


def ids_of(posted: Posted) -> dict[str, object]:
    """What every line says of an attempt."""
    return {
        "eventId": str(posted.dispatch.event.event_id),
        "jobId": str(posted.dispatch.event.job_id),
        "dispatchAttempt": 3,
    }


def test_results_that_come_together_are_written_together(
    recording: Recording, outbox: InMemoryOutbox
) -> None:
    results = [a_posted(), RETRIED, GAVE_UP]
    recording(*results)
    assert outbox.recorded == [results]


def test_a_success_is_not_worth_a_line(recording: Recording, said: Said) -> None:
    recording(a_posted())
    for event in ("webhook.failed", "webhook.claim_lost", "webhook.record_failed"):
        assert said(event) == []


@pytest.mark.parametrize(
    ("posted", "fields"),
    [
        (RETRIED, {"level": "WARNING", "error": "HTTP 500", "retryInMs": 750}),
        (GAVE_UP, {"level": "ERROR", "error": "HTTP 410", "gaveUp": True}),
    ],
    ids=["tried again", "given up"],
)
def test_a_failure_has_a_line_once_it_is_written(
    recording: Recording, said: Said, posted: Posted, fields: dict[str, object]
) -> None:
    recording(posted)
    (line,) = said("webhook.failed")
    assert line.items() >= (ids_of(posted) | fields).items()
    assert ("retryInMs" in line, "gaveUp" in line) == ("retryInMs" in fields, "gaveUp" in fields)


@pytest.mark.parametrize(
    ("posted", "delivered"), [(a_posted(), True), (RETRIED, False)], ids=["success", "failure"]
)
def test_a_result_outlives_the_databases_absence_and_is_reported_once(
    recording: Recording, outbox: InMemoryOutbox, said: Said, posted: Posted, *, delivered: bool
) -> None:
    recording.fails(5)
    recording(posted)
    assert outbox.recorded == [[posted]]
    (line,) = said("webhook.record_failed")
    expected = ids_of(posted) | {"level": "ERROR", "delivered": delivered}
    assert line.items() >= expected.items()
    assert "the database is away" not in str(line)


@pytest.mark.parametrize("posted", [RETRIED, GAVE_UP])
def test_a_failure_is_kept_until_its_lease_is_over_and_no_longer(
    recording: Recording, outbox: InMemoryOutbox, said: Said, posted: Posted
) -> None:
    recording.fails(10**6)
    recording(posted)
    assert recording.tries == LEASE_S
    assert outbox.recorded == []
    assert len(said("webhook.record_failed")) == 1
    assert len(said("webhook.claim_lost")) == 1


def test_that_the_receiver_has_it_is_kept_until_it_is_written(
    recording: Recording, outbox: InMemoryOutbox, said: Said
) -> None:
    received = a_posted()
    recording.fails(3 * LEASE_S)
    recording(received)
    assert outbox.recorded == [[received]]
    # Whoever waits for the end of this attempt is told before each further try.
    assert recording.waits == 3 * LEASE_S
    assert len(said("webhook.record_failed")) == 1
    assert said("webhook.claim_lost") == []


def test_what_the_database_refuses_is_not_kept_past_its_lease(
    recording: Recording, outbox: InMemoryOutbox, clock: ManualClock, said: Said
) -> None:
    class RefusedError(Exception):
        orig = type("CheckViolation", (Exception,), {"pgcode": "23514"})()

    def refuse() -> None:
        recording.tries += 1
        clock.advance(1)
        raise RefusedError

    outbox.on_commit = refuse
    recording(a_posted())
    assert recording.tries == LEASE_S
    assert len(said("webhook.claim_lost")) == 1


def test_a_result_past_its_lease_is_still_offered_once(
    recording: Recording, outbox: InMemoryOutbox, clock: ManualClock
) -> None:
    """The fence in the database decides: nobody may have taken the event in between."""
    recording.record(RETRIED, Lease(clock.now - 1), waits=pytest.fail)
    assert outbox.recorded == [[RETRIED]]


def test_a_row_that_somebody_holds_is_tried_again_alone_and_is_no_failure(
    recording: Recording, outbox: InMemoryOutbox, said: Said
) -> None:
    held, free = a_posted(), a_posted()
    outbox.held = {held.dispatch.event.event_id}

    def let_go_at_the_third() -> None:
        if len(outbox.offered) == 2:
            outbox.held = set()

    outbox.on_commit = let_go_at_the_third
    recording(held, free)
    assert outbox.offered == [[held, free], [held], [held]]
    assert outbox.written == [free, held]
    assert said("webhook.record_failed") == said("webhook.claim_lost") == []


def test_a_row_that_is_held_for_good_is_left_to_whoever_comes_after_the_lease(
    recording: Recording, outbox: InMemoryOutbox, clock: ManualClock, said: Said
) -> None:
    held = a_posted(TryAgain(750, "HTTP 500"), Answered(500))
    outbox.held = {held.dispatch.event.event_id}
    outbox.on_commit = lambda: clock.advance(1)
    recording(held)
    assert outbox.offered == [[held]] * LEASE_S
    assert len(said("webhook.claim_lost")) == 1


@pytest.mark.parametrize("posted", [a_posted(), RETRIED, GAVE_UP])
def test_a_result_that_counts_no_more_is_told_of_once_and_not_tried_again(
    recording: Recording, outbox: InMemoryOutbox, said: Said, posted: Posted
) -> None:
    outbox.stale = {posted.dispatch.event.event_id}
    recording(posted)
    assert outbox.offered == [[posted]]
    assert said("webhook.failed") == []
    (line,) = said("webhook.claim_lost")
    assert line.items() >= (ids_of(posted) | {"level": "INFO"}).items()
