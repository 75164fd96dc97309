"""Events are handed out once, leased by the clock, and recorded by the number of the attempt."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.webhook_event import (
    LOST,
    Answered,
    Dispatch,
    GivenUp,
    Posted,
    Received,
    TryAgain,
    Verdict,
)
from notify_queue.persistence.repositories.outbox import Recorded
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.webhooks.take import TakeDueEvents
from tests.support.events import Events

LEASE = timedelta(seconds=10)
MOST = 3


def take(unit_of_work: UnitOfWorkFactory, limit: int = 100) -> list[Dispatch]:
    return TakeDueEvents(unit_of_work, 10, MOST)(limit).dispatches


def taken(dispatches: list[Dispatch]) -> set[UUID]:
    return {dispatch.event.event_id for dispatch in dispatches}


def record(
    unit_of_work: UnitOfWorkFactory, dispatches: list[Dispatch], verdict: Verdict
) -> Recorded:
    with unit_of_work() as unit:
        recorded = unit.outbox.record([Posted(each, Answered(0), verdict) for each in dispatches])
        unit.commit()
    return recorded


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


def test_a_received_event_is_over(unit_of_work: UnitOfWorkFactory, events: Events) -> None:
    [event_id] = events.add()
    events.change(event_id, "last_error = 'HTTP 500'")
    assert record(unit_of_work, take(unit_of_work), Received()) == ({event_id}, set())
    row = events.row(event_id)
    assert row["delivered_at"] is not None
    assert (row["failed_at"], row["last_error"], row["leased_until"]) == (None, None, None)
    assert take(unit_of_work) == []


def test_each_result_of_a_batch_reaches_its_own_event(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [late, received, again, over] = events.add(4)
    [stale] = take(unit_of_work, 1)
    events.change(late, "leased_until = now()")
    events.change(again, "dispatch_attempts = 1")
    events.change(over, "dispatch_attempts = 2")
    now = {each.event.event_id: each for each in take(unit_of_work)}
    batch = [
        Posted(stale, Answered(0), GivenUp("late")),
        Posted(now[received], Answered(0), Received()),
        Posted(now[again], Answered(0), TryAgain(60_000, "busy")),
        Posted(now[over], Answered(0), GivenUp("gone")),
    ]
    with unit_of_work() as unit:
        assert unit.outbox.record(batch) == ({received, again, over}, set())
        unit.commit()
    rows = [events.row(each) for each in (late, received, again, over)]
    assert [bool(row["delivered_at"]) for row in rows] == [False, True, False, False]
    assert [bool(row["failed_at"]) for row in rows] == [False, False, False, True]
    assert [bool(row["leased_until"]) for row in rows] == [True, False, False, False]
    assert [row["next_attempt_at"] > row["created_at"] for row in rows] == [
        False,
        False,
        True,
        False,
    ]
    assert [row["last_error"] for row in rows] == [None, None, "busy", "gone"]


def test_a_delay_begins_at_the_clock_and_not_at_the_transaction(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    [dispatch] = take(unit_of_work)
    with unit_of_work() as unit:
        began = unit._session.scalar(text("SELECT now() FROM pg_sleep(0.2)"))
        unit.outbox.record([Posted(dispatch, Answered(0), TryAgain(5_000, "HTTP 500"))])
        unit.commit()
    assert began is not None
    assert events.row(event_id)["next_attempt_at"] > began + timedelta(seconds=5.2)


def test_a_failed_attempt_makes_the_event_due_after_its_delay(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    dispatches = take(unit_of_work)
    assert record(unit_of_work, dispatches, TryAgain(60_000, "HTTP 500")).written == {event_id}
    row = events.row(event_id)
    waits = row["next_attempt_at"] - dispatches[0].taken_at
    assert timedelta(seconds=60) <= waits < timedelta(seconds=70)
    assert (row["last_error"], row["leased_until"], row["failed_at"]) == ("HTTP 500", None, None)
    assert take(unit_of_work) == []


def test_a_given_up_event_is_taken_no_more(unit_of_work: UnitOfWorkFactory, events: Events) -> None:
    [event_id] = events.add()
    record(unit_of_work, take(unit_of_work), GivenUp("HTTP 500"))
    row = events.row(event_id)
    assert row["failed_at"] is not None
    assert (row["last_error"], row["leased_until"], row["delivered_at"]) == ("HTTP 500", None, None)
    assert take(unit_of_work) == []


@pytest.mark.parametrize("verdict", [TryAgain(1, "late"), GivenUp("late")])
def test_a_failure_of_an_attempt_that_stands_no_more_changes_nothing(
    unit_of_work: UnitOfWorkFactory, events: Events, verdict: Verdict
) -> None:
    [event_id] = events.add()
    late = take(unit_of_work)
    events.change(event_id, "leased_until = now()")
    take(unit_of_work)
    before = events.row(event_id)
    assert record(unit_of_work, late, verdict) == (set(), set())
    assert events.row(event_id) == before


@pytest.mark.parametrize("verdict", [TryAgain(1, "late"), GivenUp("late"), Received()])
@pytest.mark.parametrize("end", ["delivered_at", "failed_at"])
def test_what_is_over_stays_so_unless_the_receiver_has_it_after_all(
    unit_of_work: UnitOfWorkFactory, events: Events, end: str, verdict: Verdict
) -> None:
    [event_id] = events.add()
    late = take(unit_of_work)
    events.change(event_id, f"leased_until = NULL, last_error = 'x', {end} = now()")
    before = events.row(event_id)
    recorded = record(unit_of_work, late, verdict)
    row = events.row(event_id)
    if end == "failed_at" and verdict == Received():
        assert recorded.written == {event_id}
        assert row["delivered_at"] is not None
        assert (row["failed_at"], row["last_error"]) == (None, None)
    else:
        assert recorded == (set(), set())
        assert row == before


def test_a_late_success_counts_though_another_attempt_is_on_its_way(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    late = take(unit_of_work)
    events.change(event_id, "leased_until = now()")
    standing = take(unit_of_work)
    assert record(unit_of_work, late, Received()).written == {event_id}
    delivered = events.row(event_id)
    assert record(unit_of_work, standing, TryAgain(1, "no")).written == set()
    assert events.row(event_id) == delivered


def test_one_held_row_keeps_no_other_result_waiting(
    unit_of_work: UnitOfWorkFactory, engine: Engine, events: Events
) -> None:
    added = events.add(3)
    dispatches = take(unit_of_work)
    with engine.begin() as connection:
        connection.execute(
            text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": added[1]}
        )
        recorded = record(unit_of_work, dispatches, Received())
    assert recorded == ({added[0], added[2]}, {added[1]})
    left = [each for each in dispatches if each.event.event_id in recorded.held]
    assert record(unit_of_work, left, Received()) == ({added[1]}, set())
    assert events.delivered() == 3


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
    step = TakeDueEvents(unit_of_work, 10, MOST)
    assert (step(5).full, step(5).next_s) == (False, None)
    events.add(5)
    events.add(due_in_s=30)
    full = step(5)
    assert (full.full, full.next_s) == (True, None)
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
