"""A failure counts for the attempt that stands alone, a success whichever attempt brings it."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.redrive import GivenUpEvents
from notify_queue.domain.webhook_event import Answered, GivenUp, Posted, Received, TryAgain, Verdict
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from notify_queue.webhooks.revive import ReviveEvents
from tests.support.dispatches import MOST, record, take, taken
from tests.support.events import Events
from tests.support.jobs import Jobs


def test_a_received_event_is_over(unit_of_work: UnitOfWorkFactory, events: Events) -> None:
    [event_id] = events.add()
    events.change(event_id, "last_error = 'HTTP 500'")
    assert record(unit_of_work, take(unit_of_work), Received()) == [True]
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
    dispatches = [stale, now[received], now[again], now[over]]
    verdicts: list[Verdict] = [
        GivenUp("late"),
        Received(),
        TryAgain(60_000, "busy"),
        GivenUp("gone"),
    ]
    assert record(unit_of_work, dispatches, *verdicts) == [False, True, True, True]
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
        unit.webhook_results.record([Posted(dispatch, Answered(0), TryAgain(5_000, "HTTP 500"))])
        unit.commit()
    assert began is not None
    assert events.row(event_id)["next_attempt_at"] > began + timedelta(seconds=5.2)


def test_a_failed_attempt_makes_the_event_due_after_its_delay(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    dispatches = take(unit_of_work)
    assert record(unit_of_work, dispatches, TryAgain(60_000, "HTTP 500")) == [True]
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
    assert record(unit_of_work, late, verdict) == [False]
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
    written = record(unit_of_work, late, verdict)
    row = events.row(event_id)
    if end == "failed_at" and verdict == Received():
        assert written == [True]
        assert row["delivered_at"] is not None
        assert (row["failed_at"], row["last_error"]) == (None, None)
    else:
        assert written == [False]
        assert row == before


@pytest.mark.parametrize("verdict", [TryAgain(1, "late"), GivenUp("late")])
def test_a_failure_from_before_a_revival_changes_nothing(
    unit_of_work: UnitOfWorkFactory, events: Events, verdict: Verdict
) -> None:
    [event_id] = events.add()
    events.change(event_id, f"dispatch_attempts = {MOST - 1}")
    late = take(unit_of_work)
    events.change(event_id, "leased_until = now()")
    # Given up by whoever found it with its budget spent, and revived by an operator.
    assert take(unit_of_work) == []
    assert ReviveEvents(unit_of_work).batch(GivenUpEvents(), 10) == 1
    before = events.row(event_id)
    assert record(unit_of_work, late, verdict) == [False]
    assert events.row(event_id) == before


@pytest.mark.parametrize("first", [TryAgain(60_000, "first"), GivenUp("first"), Received()])
@pytest.mark.parametrize("second", [TryAgain(60_000, "second"), GivenUp("second"), Received()])
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned round"])
def test_of_two_attempts_that_end_together_the_one_that_counts_is_written(
    unit_of_work: UnitOfWorkFactory,
    events: Events,
    first: Verdict,
    second: Verdict,
    *,
    turned: bool,
) -> None:
    [event_id] = events.add()
    attempts = take(unit_of_work)
    events.change(event_id, "leased_until = now()")
    attempts += take(unit_of_work)
    # The receiver has it, whichever attempt it was; else the attempt that stands has failed.
    counts = first if first == Received() and second != Received() else second
    expected = [counts is first, counts is second]
    verdicts = [first, second]
    if turned:
        attempts, verdicts, expected = attempts[::-1], verdicts[::-1], expected[::-1]
    assert record(unit_of_work, attempts, *verdicts) == expected
    row = events.row(event_id)
    assert (row["delivered_at"] is not None) == (counts == Received())
    assert (row["failed_at"] is not None) == isinstance(counts, GivenUp)
    assert row["last_error"] == getattr(counts, "error", None)


def test_a_late_success_counts_though_another_attempt_is_on_its_way(
    unit_of_work: UnitOfWorkFactory, events: Events
) -> None:
    [event_id] = events.add()
    late = take(unit_of_work)
    events.change(event_id, "leased_until = now()")
    standing = take(unit_of_work)
    assert record(unit_of_work, late, Received()) == [True]
    delivered = events.row(event_id)
    assert record(unit_of_work, standing, TryAgain(1, "no")) == [False]
    assert events.row(event_id) == delivered


def test_a_result_whose_event_is_gone_is_not_written_and_not_kept(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs, events: Events
) -> None:
    events.add()
    dispatches = take(unit_of_work)
    jobs.run("DELETE FROM notification_jobs")
    assert record(unit_of_work, dispatches, Received()) == [False]


def test_one_held_row_keeps_no_other_result_waiting(
    unit_of_work: UnitOfWorkFactory, engine: Engine, events: Events
) -> None:
    added = events.add(3)
    dispatches = take(unit_of_work)
    with engine.begin() as connection:
        connection.execute(
            text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": added[1]}
        )
        written = record(unit_of_work, dispatches, Received())
    left = [each for each, done in zip(dispatches, written, strict=True) if done is None]
    assert sorted(written, key=str) == [None, True, True]
    assert taken(left) == {added[1]}
    assert record(unit_of_work, left, Received()) == [True]
    assert events.delivered() == 3
