"""What one look at the outbox takes, and what it gives up instead."""

from datetime import timedelta

import pytest

from notify_queue.delivery.lease import Lease
from notify_queue.domain.webhook_event import LOST
from notify_queue.webhooks.take import TakeDueEvents
from tests.unit.webhooks.in_memory import LEASE_S, MAX_ATTEMPTS, InMemoryOutbox, a_due_event
from tests.unit.worker.conftest import ManualClock, Said


@pytest.fixture
def take(outbox: InMemoryOutbox) -> TakeDueEvents:
    return TakeDueEvents(outbox, LEASE_S, MAX_ATTEMPTS)


def test_a_lease_ends_here_no_later_than_in_the_database(
    take: TakeDueEvents, outbox: InMemoryOutbox, clock: ManualClock
) -> None:
    outbox.add(1)
    before = clock.now
    outbox.on_commit = lambda: clock.advance(3)
    taken = take(5)
    assert outbox.leases == [timedelta(seconds=LEASE_S)]
    assert taken.lease == Lease(before + LEASE_S)


def test_waiting_for_the_database_takes_nothing_from_the_time_to_send_in(
    take: TakeDueEvents, outbox: InMemoryOutbox, clock: ManualClock
) -> None:
    outbox.add(1)
    outbox.on_lock = lambda: clock.advance(2 * LEASE_S)
    assert not take(5).lease.over


def test_a_look_that_got_all_it_asked_for_says_that_more_may_be_due(
    take: TakeDueEvents, outbox: InMemoryOutbox
) -> None:
    outbox.next_due_s = 7.0
    outbox.add(3)
    looks = [take(2), take(2), take(2)]
    assert [(len(each.dispatches), each.full, each.next_s) for each in looks] == [
        (2, True, None),
        (1, False, 7.0),
        (0, False, 7.0),
    ]


def test_an_attempt_counts_whether_or_not_the_earlier_ones_were_forgiven(
    take: TakeDueEvents, outbox: InMemoryOutbox
) -> None:
    outbox.due = [a_due_event(attempts=12, forgiven=10)]
    (dispatch,) = take(5).dispatches
    assert (dispatch.attempt, dispatch.spent) == (13, 3)


@pytest.mark.parametrize(
    ("lost", "error"), [(True, LOST), (False, "HTTP 500")], ids=["lost", "answered"]
)
def test_what_is_found_due_with_its_budget_spent_is_given_up_and_not_taken(
    take: TakeDueEvents, outbox: InMemoryOutbox, said: Said, *, lost: bool, error: str
) -> None:
    spent = a_due_event(attempts=MAX_ATTEMPTS, lost=lost, last_error="HTTP 500")
    fresh = a_due_event(attempts=MAX_ATTEMPTS - 1, last_error="HTTP 500")
    outbox.due = [spent, fresh]
    taken = take(5)
    assert [each.event for each in taken.dispatches] == [fresh.event]
    assert outbox.given_up == [(spent.event.event_id, error)]
    (record,) = said("webhook.failed")
    expected = {
        "level": "ERROR",
        "eventId": str(spent.event.event_id),
        "jobId": str(spent.event.job_id),
        "dispatchAttempt": MAX_ATTEMPTS,
        "error": error,
        "gaveUp": True,
    }
    assert record.items() >= expected.items()


def test_what_could_not_be_committed_is_neither_taken_nor_reported(
    take: TakeDueEvents, outbox: InMemoryOutbox, said: Said
) -> None:
    outbox.due = [a_due_event(attempts=MAX_ATTEMPTS)]

    def away() -> None:
        raise ConnectionError("the database is away")

    outbox.on_commit = away
    with pytest.raises(ConnectionError):
        take(5)
    assert said("webhook.failed") == []
