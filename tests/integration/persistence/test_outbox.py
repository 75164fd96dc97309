"""Events are handed out once and leased by the clock, the longest due first."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.webhook_event import LOST, Received
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.webhooks.take import TakeDueEvents
from tests.support.dispatches import LEASE_S, MOST, record, take, taken
from tests.support.events import Events

LEASE = timedelta(seconds=LEASE_S)


def test_the_longest_due_go_first_and_no_more_than_asked_for(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [third] = events.add(due_in_s=-1)
    [first] = events.add(due_in_s=-3)
    [second] = events.add(due_in_s=-2)
    [later] = events.add(due_in_s=60)
    assert taken(take(unit_of_work, 2)) == {first, second}
    assert taken(take(unit_of_work, 2)) == {third}
    assert take(unit_of_work) == []
    assert events.row(later)["dispatch_attempts"] == 0


def test_the_longest_due_go_first_whatever_the_plan(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    # Neither the order of the table nor that of an index.
    [second], [first], [_] = (events.add(due_in_s=due) for due in (-2, -3, -1))
    with unit_of_work() as unit:
        for each in ("indexscan", "bitmapscan"):
            unit._session.execute(text(f"SET LOCAL enable_{each} = off"))
        due = unit.outbox.lock_due(2)
    assert [each.event.event_id for each in due] == [first, second]


def test_what_is_taken_says_all_that_the_receiver_is_told(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    events.change(event_id, "status = 'FAILED', attempt_count = 4, redrive_count = 2")
    [dispatch] = take(unit_of_work)
    row = events.row(event_id)
    told = dispatch.event
    assert (told.event_id, told.job_id, told.status) == (row["id"], row["job_id"], "FAILED")
    assert (told.attempt_count, told.redrive_count) == (4, 2)
    assert told.occurred_at == row["occurred_at"]
    assert (dispatch.attempt, dispatch.spent) == (1, 1)
    assert row["leased_until"] - LEASE <= dispatch.taken_at


def test_the_lease_begins_at_the_clock_and_not_at_the_transaction(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    with unit_of_work() as unit:
        due = unit.outbox.lock_due(1)
        unit._session.execute(text("SELECT pg_sleep(0.2)"))
        unit.outbox.take(due, LEASE)
        began = unit._session.scalar(text("SELECT now()"))
        unit.commit()
    assert began is not None
    assert events.row(event_id)["leased_until"] > began + LEASE + timedelta(seconds=0.2)


def test_rows_that_another_transaction_holds_are_passed_over(
    unit_of_work: UnitOfWorkFactory, engine: Engine, events: Events
) -> None:
    [held, free] = events.add(2)
    with engine.begin() as connection:
        connection.execute(
            text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": held}
        )
        assert taken(take(unit_of_work)) == {free}
    assert taken(take(unit_of_work)) == {held}


def test_takers_at_once_share_the_events_and_take_none_twice(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    events.add(200)
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: take(unit_of_work, 30), range(12)))
    ids = [dispatch.event.event_id for batch in batches for dispatch in batch]
    # Locked rows are passed over, so the last ones may have been left to nobody.
    ids += [dispatch.event.event_id for dispatch in take(unit_of_work)]
    assert len(ids) == len(set(ids)) == 200
    assert events.count("dispatch_attempts = 1") == 200


def test_an_event_whose_lease_is_over_is_taken_again_with_the_next_number(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    take(unit_of_work)
    assert take(unit_of_work) == []
    events.change(event_id, "leased_until = now()")
    [again] = take(unit_of_work)
    assert again.attempt == 2


def test_an_event_without_an_attempt_left_is_given_up_instead_of_taken(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [lost, failed, revived] = events.add(3)
    events.change(lost, "dispatch_attempts = 3, leased_until = now()")
    events.change(failed, "dispatch_attempts = 5, last_error = 'HTTP 500'")
    events.change(revived, "dispatch_attempts = 5, forgiven_attempts = 3")
    [dispatch] = take(unit_of_work)
    assert (dispatch.event.event_id, dispatch.attempt, dispatch.spent) == (revived, 6, 3)
    for event_id, error in ((lost, LOST), (failed, "HTTP 500")):
        row = events.row(event_id)
        assert row["failed_at"] is not None
        assert (row["last_error"], row["leased_until"]) == (error, None)


def test_a_pass_says_whether_more_is_due_and_when(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    step = TakeDueEvents(unit_of_work, LEASE_S, MOST)
    assert (step(5).full, step(5).next_s) == (False, None)
    events.add(5)
    events.add(due_in_s=30)
    full = step(5)
    assert (full.full, full.next_s) == (True, None)
    record(unit_of_work, full.dispatches, Received())
    rest = step(5)
    assert not rest.full
    assert rest.next_s is not None
    assert 20 < rest.next_s <= 30


def test_the_next_event_is_one_that_waits_and_as_far_away_as_the_clock_says(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [delivered, given_up] = events.add(2, due_in_s=5)
    events.change(delivered, "delivered_at = now()")
    events.change(given_up, "failed_at = now()")
    [waits] = events.add(due_in_s=30)
    with unit_of_work() as unit:
        began = unit._session.scalar(text("SELECT now() FROM pg_sleep(0.2)"))
        next_s = unit.outbox.seconds_until_next()
    assert began is not None
    assert next_s is not None
    away_s = (events.row(waits)["next_attempt_at"] - began).total_seconds()
    assert 20 < next_s < away_s - 0.2


@pytest.mark.parametrize("leased", [False, True], ids=["new", "lost"])
def test_a_due_event_that_somebody_holds_is_looked_at_again_soon(
    unit_of_work: UnitOfWorkFactory, engine: Engine, events: Events, *, leased: bool
) -> None:
    [held] = events.add()
    if leased:
        events.change(held, "dispatch_attempts = 1, leased_until = now() - interval '1 second'")
    step = TakeDueEvents(unit_of_work, LEASE_S, MOST)
    with engine.begin() as connection:
        connection.execute(
            text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": held}
        )
        passed_over = step(10)
    assert passed_over.dispatches == []
    assert passed_over.next_s is not None
    assert 0 < passed_over.next_s <= 1
    assert taken(step(10).dispatches) == {held}


def test_a_lease_that_may_end_without_a_result_is_waited_for_too(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    events.add(3, due_in_s=-60)
    events.add(due_in_s=30)
    step = TakeDueEvents(unit_of_work, LEASE_S, MOST)
    # Two passes, and others' leases are as good as our own; the first to end counts.
    one = step(1)
    events.change(one.dispatches[0].event.event_id, "leased_until = now() + interval '5 minutes'")
    others = step(10)
    assert (one.next_s, others.full) == (None, False)
    assert others.next_s is not None
    assert 5 < others.next_s <= 10
    record(unit_of_work, one.dispatches + others.dispatches, Received())
    rest = step(10)
    assert rest.next_s is not None
    assert 20 < rest.next_s <= 30
