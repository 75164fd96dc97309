"""Given-up events are put back to work, each once in a run."""

from datetime import timedelta

from sqlalchemy import Engine, text

from notify_queue.domain.redrive import GivenUpEvents
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.webhooks.revive import ReviveEvents
from tests.support.events import Events

GIVEN_UP = (
    "failed_at = now() - interval '{} s', dispatch_attempts = 10, last_error = 'HTTP 500',"
    " next_attempt_at = now() - interval '1 hour'"
)


def test_a_revived_event_is_due_with_a_fresh_budget_and_its_old_count(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id, delivered] = events.add(2)
    events.change(event_id, GIVEN_UP.format(5))
    events.change(delivered, "delivered_at = now(), dispatch_attempts = 1")
    untouched = events.row(delivered)
    revive = ReviveEvents(unit_of_work)
    assert revive.remaining(GivenUpEvents()) == 1
    assert revive.batch(GivenUpEvents(), 10) == 1
    row = events.row(event_id)
    assert (row["failed_at"], row["last_error"]) == (None, "HTTP 500")
    assert (row["dispatch_attempts"], row["forgiven_attempts"]) == (10, 10)
    assert abs(row["next_attempt_at"] - revive.now()) < timedelta(seconds=10)
    assert events.row(delivered) == untouched
    assert revive.batch(GivenUpEvents(), 10) == revive.remaining(GivenUpEvents()) == 0


def test_the_longest_given_up_go_first_and_bounds_hold(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [young, old, older] = events.add(3)
    for event_id, seconds in ((young, 1), (old, 100), (older, 200)):
        events.change(event_id, GIVEN_UP.format(seconds))
    revive = ReviveEvents(unit_of_work)
    since = GivenUpEvents(since=events.row(old)["failed_at"])
    assert revive.remaining(since) == 2
    assert revive.batch(since, 1) == 1
    assert events.row(old)["failed_at"] is None
    # What was given up after a run began is not that run's.
    before = GivenUpEvents(before=events.row(young)["failed_at"])
    assert revive.batch(before, 10) == 1
    assert events.row(older)["failed_at"] is None
    assert events.row(young)["failed_at"] is not None


def test_an_event_that_somebody_holds_is_passed_over(
    unit_of_work: UnitOfWorkFactory, engine: Engine, events: Events
) -> None:
    [held, free] = events.add(2)
    for event_id in (held, free):
        events.change(event_id, GIVEN_UP.format(5))
    revive = ReviveEvents(unit_of_work)
    with engine.begin() as connection:
        connection.execute(
            text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": held}
        )
        assert revive.batch(GivenUpEvents(), 10) == 1
        assert revive.remaining(GivenUpEvents()) == 1
    assert events.row(free)["failed_at"] is None
