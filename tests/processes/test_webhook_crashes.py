"""Workers die, freeze or lose the database in the middle of a POST: the event comes again."""

import signal
import threading
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy
from sqlalchemy import Engine, text

from notify_queue.domain.webhook_event import LOST
from tests.processes.test_webhooks import QUICK, SELDOM_MS, telling
from tests.support.events import Events
from tests.support.faults import WORKER, own_server, waiting_for_a_lock
from tests.support.processes import Processes
from tests.support.receiver import OK, Act, Connection, Receiver, Request, answer, hang, status
from tests.support.waiting import until


def test_after_a_kill_the_event_comes_again_under_its_id(
    processes: Processes, events: Events
) -> None:
    added = events.add(5)
    with Receiver(hang) as receiver:
        killed = telling(processes, receiver)
        receiver.wait_for(5)
        leases = {event_id: events.row(event_id)["leased_until"] for event_id in added}
        killed.popen.kill()
        receiver.act = answer()
        # At the end of their leases, however seldom it looks.
        telling(processes, receiver, WEBHOOK_POLL_INTERVAL_MS=SELDOM_MS)
        until(lambda: events.delivered() == 5, "the events to come again")
        told = receiver.event_ids()
    for event_id in added:
        row = events.row(event_id)
        # One POST for each attempt that was counted, and none more.
        assert told.count(str(event_id)) == row["dispatch_attempts"] == 2
        assert row["delivered_at"] >= leases[event_id]
    assert len(told) == 10


# Not delivered, the attempt's number alone tells the late failure from the later one.
@pytest.mark.parametrize(
    "act", [answer(), status(503, "Retry-After: 600")], ids=["delivered", "failed again"]
)
def test_a_worker_that_was_frozen_changes_nothing_when_it_goes_on(
    processes: Processes, events: Events, act: Act
) -> None:
    [event_id] = events.add()
    with Receiver(hang) as receiver:
        frozen = telling(processes, receiver)
        receiver.wait_for(1)
        frozen.popen.send_signal(signal.SIGSTOP)
        receiver.act = act
        telling(processes, receiver)
        receiver.wait_for(2)
        until(lambda: events.row(event_id)["leased_until"] is None, "another worker to record it")
        recorded = events.row(event_id)
        frozen.popen.send_signal(signal.SIGCONT)
        until(lambda: frozen.lines("webhook.claim_lost"), "the frozen one to learn it")
    assert events.row(event_id) == recorded
    assert recorded["dispatch_attempts"] == 2
    [lost] = frozen.lines("webhook.claim_lost")
    assert (lost["dispatchAttempt"], lost["eventId"]) == (1, str(event_id))


def lock(operator: sqlalchemy.Connection, event_id: UUID) -> None:
    """Hold the row of an event until the operator's transaction ends."""
    operator.execute(text("SELECT FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": event_id})


def locking(operator: sqlalchemy.Connection, event_id: UUID) -> Act:
    """Accept every event; while this one is on its way, its row gets held."""

    def act(connection: Connection, request: Request) -> bool:
        if request.headers["x-webhook-event-id"] == str(event_id):
            lock(operator, event_id)
        connection.send(OK)
        return True

    return act


def test_an_answer_that_cannot_be_recorded_yet_is_kept(
    processes: Processes, engine: Engine, events: Events
) -> None:
    [held, free] = events.add(2)
    with Receiver() as receiver, engine.connect() as operator:
        receiver.act = locking(operator, held)
        worker = telling(processes, receiver, WEBHOOK_TIMEOUT_MS=10_000)
        until(lambda: events.row(free)["delivered_at"], "the other event to be recorded")
        assert events.row(held)["delivered_at"] is None
        operator.rollback()
        until(lambda: events.row(held)["delivered_at"], "the held one to be recorded too")
        assert len(receiver.requests) == 2
    assert not worker.lines("webhook.failed")


def test_a_2xx_is_no_failure_when_the_database_is_away(tmp_path: Path) -> None:
    answering = threading.Event()

    def wait(connection: Connection, _: Request) -> bool:
        answering.wait(20)
        connection.send(OK)
        return True

    with own_server() as server, Receiver(wait) as receiver:
        events = Events(server.engine)
        [event_id] = events.add()
        with Processes(server.url, tmp_path) as processes:
            worker = telling(processes, receiver, WEBHOOK_TIMEOUT_MS=20_000)
            receiver.wait_for(1)
            with server.down():
                answering.set()
                until(lambda: worker.lines("webhook.record_failed"), "the recording to fail")
            until(lambda: events.delivered() == 1, "the answer to be recorded after all")
        row = events.row(event_id)
    assert (row["dispatch_attempts"], row["last_error"]) == (1, None)
    assert len(receiver.requests) == 1
    # Once, however often it was tried.
    [failed] = worker.lines("webhook.record_failed")
    assert (failed["delivered"], failed["eventId"]) == (True, str(event_id))
    assert not worker.lines("webhook.failed")


def test_a_2xx_to_the_last_attempt_counts_though_it_can_be_recorded_only_after_its_lease(
    processes: Processes, engine: Engine, events: Events
) -> None:
    [event_id] = events.add()
    with Receiver() as receiver, engine.connect() as operator:
        receiver.act = locking(operator, event_id)
        worker = telling(processes, receiver, WEBHOOK_MAX_ATTEMPTS=1)
        receiver.wait_for(1)
        until(
            lambda: events.count("leased_until < now() - interval '1 second'") == 1,
            "its lease to be over",
        )
        operator.rollback()
        # Whoever is first: given up by a pass that finds it so, it is delivered all the same.
        until(lambda: events.delivered() == 1, "the answer to be recorded")
    row = events.row(event_id)
    assert (row["dispatch_attempts"], row["failed_at"], row["last_error"]) == (1, None, None)
    assert len(receiver.requests) == 1
    assert not worker.lines("webhook.claim_lost")


def test_a_held_result_keeps_no_other_event_from_being_sent(
    processes: Processes, engine: Engine, events: Events
) -> None:
    [held, *others] = events.add(5)
    with Receiver() as receiver, engine.connect() as operator:
        receiver.act = locking(operator, held)
        telling(processes, receiver, WEBHOOK_CONCURRENCY=1, WEBHOOK_TIMEOUT_MS=60_000)
        until(lambda: events.delivered() == len(others), "the others to be delivered meanwhile")
        operator.rollback()
        until(lambda: events.delivered() == 5, "the held one to be recorded")
    assert len(receiver.requests) == 5


def test_waiting_for_a_connection_is_no_attempt(
    processes: Processes, engine: Engine, events: Events
) -> None:
    with Receiver() as receiver, engine.connect() as operator:
        # The only connection is with the deliveries, who wait for a lock: for twice the time that
        # a lease lives.
        settings = {"DATABASE_POOL_MAX": 1, "WEBHOOK_TIMEOUT_MS": 500, "WEBHOOK_MAX_ATTEMPTS": 1}
        worker = telling(processes, receiver, **settings)
        operator.execute(text("LOCK TABLE job_queue IN ACCESS EXCLUSIVE MODE"))
        until(lambda: waiting_for_a_lock(engine, WORKER), "the deliveries to wait")
        events.add(20)
        until(lambda: worker.lines("worker.poll_failed"), "the deliveries to have waited in vain")
        until(lambda: events.count("dispatch_attempts > 0") == 20, "every event to be taken")
        operator.rollback()
        until(lambda: events.delivered() == 20, "every event to be delivered")
    assert len(receiver.requests) == 20


def test_a_held_event_waits_for_its_holder_and_not_for_the_next_look(
    processes: Processes, engine: Engine, events: Events
) -> None:
    [held, free] = events.add(2)
    with Receiver() as receiver, engine.connect() as operator:
        lock(operator, held)
        # Nor for the end of the other's lease.
        seldom = {"WEBHOOK_POLL_INTERVAL_MS": SELDOM_MS, "WEBHOOK_TIMEOUT_MS": 60_000}
        telling(processes, receiver, **seldom)
        until(lambda: events.row(free)["delivered_at"], "the other event to be delivered")
        operator.rollback()
        until(lambda: events.delivered() == 2, "the held one to be delivered too")


def test_an_event_that_kills_its_worker_is_given_up_at_last(
    processes: Processes, events: Events
) -> None:
    added = events.add(3)
    deadly = added[0]
    with Receiver() as receiver:
        settings = {**QUICK, "WEBHOOK_URL": receiver.url, "WEBHOOK_MAX_ATTEMPTS": 2}
        for attempt in (1, 2):
            # Only that one is due, so that its neighbours keep their budgets.
            for other in added[1:]:
                events.change(other, "next_attempt_at = now() + interval '1 hour'")
            worker = processes.start_program(
                "tests.support.killer_worker", "worker", {**settings, "DEADLY": str(deadly)}
            )
            assert worker.popen.wait(30) == -signal.SIGKILL
            assert events.row(deadly)["dispatch_attempts"] == attempt
            events.change(deadly, "leased_until = now()")
        for other in added[1:]:
            events.change(other, "next_attempt_at = now()")
        worker = processes.start_program(
            "tests.support.killer_worker", "worker", {**settings, "DEADLY": str(deadly)}
        )
        until(lambda: events.delivered() == 2, "the others to be delivered")
        until(lambda: events.row(deadly)["failed_at"], "that one to be given up")
    assert events.row(deadly)["last_error"] == LOST
    until(lambda: worker.lines("webhook.failed"), "the line to be written")
    [line] = worker.lines("webhook.failed")
    assert (line["gaveUp"], line["error"], line["dispatchAttempt"]) == (True, LOST, 2)
    assert worker.popen.poll() is None
