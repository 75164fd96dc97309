"""Real workers tell a real receiver: once when all is well, else until it has answered."""

import base64
import json
import signal
import threading
from pathlib import Path
from uuid import UUID

import pytest
import requests
from sqlalchemy import Engine, text
from standardwebhooks import Webhook

from tests.integration.scripts.runs import Scripts
from tests.support.events import Events
from tests.support.faults import WORKER, connections, idle_in_transaction, waiting_for_a_lock
from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.processes import Process, Processes
from tests.support.receiver import OK, Connection, Receiver, Request, answer, hang, status
from tests.support.waiting import until

SECRETS = [f"whsec_{base64.b64encode(bytes([n]) * 32).decode()}" for n in (1, 2)]
QUICK: dict[str, str | float] = {
    "MOCK_FAILURE_RATE": 0,
    "MOCK_LATENCY_MS": 0,
    "RATE_LIMIT_MAX_NOTIFICATIONS": 0,
    "WEBHOOK_ALLOW_PRIVATE": "true",
    "WEBHOOK_TIMEOUT_MS": 1000,
    "WEBHOOK_POLL_INTERVAL_MS": 50,
    "BASE_RETRY_DELAY_MS": 50,
    "MAX_RETRY_DELAY_MS": 200,
}


# Longer than a test waits for anything.
SELDOM_MS = 300_000


def telling(processes: Processes, receiver: Receiver, **settings: str | float) -> Process:
    """Start a worker that tells this receiver."""
    return processes.running("worker", **{**QUICK, "WEBHOOK_URL": receiver.url, **settings})


def test_a_notification_ends_in_one_signed_event(
    processes: Processes, jobs: Jobs, events: Events
) -> None:
    with Receiver() as receiver:
        telling(processes, receiver, WEBHOOK_SECRET=" ".join(SECRETS))
        sent = post(processes.running("api"), a_body()).json()
        [request] = receiver.wait_for(1)
        until(lambda: events.delivered() == 1, "the event to be recorded as delivered")

    # Either secret will do while one follows the other.
    for secret in SECRETS:
        body = Webhook(secret).verify(request.body, request.headers)
    [event] = events.of(UUID(sent["id"]))
    row = jobs.row(UUID(sent["id"]))
    assert body == {
        "eventId": str(event["id"]),
        "jobId": sent["id"],
        "status": "SENT",
        "attemptCount": 1,
        "timestamp": f"{row['sent_at'].isoformat(timespec='milliseconds')[:23]}Z",
        "redriveCount": 0,
    }
    assert (
        request.headers["x-webhook-event-id"] == request.headers["webhook-id"] == str(event["id"])
    )
    assert event["dispatch_attempts"] == 1


def test_without_a_secret_nothing_is_signed(processes: Processes, events: Events) -> None:
    events.add()
    with Receiver() as receiver:
        telling(processes, receiver)
        [request] = receiver.wait_for(1)
    assert not [name for name in request.headers if name.startswith("webhook-")]


def test_events_wait_until_there_is_somebody_to_tell(
    processes: Processes, jobs: Jobs, events: Events
) -> None:
    silent = processes.running("worker", **QUICK)
    # Not in the order in which they are written.
    later, earlier = events.add(10, due_in_s=-60), events.add(10, due_in_s=-120)
    [job_id] = jobs.add()
    until(lambda: jobs.statuses() == {"SENT": 21}, "the job to be sent too")
    assert silent.stop() == 0
    assert events.count("dispatch_attempts = 0 AND delivered_at IS NULL") == 21
    with Receiver() as receiver:
        telling(processes, receiver, WEBHOOK_CONCURRENCY=1)
        until(lambda: events.delivered() == 21, "all to be told")
        told = receiver.event_ids()
    # The longest due first.
    assert told == [*map(str, earlier), *map(str, later), str(events.of(job_id)[0]["id"])]


@pytest.mark.parametrize("code", [302, 400, 410, 429, 503])
def test_an_event_is_told_until_the_answer_is_2xx(
    processes: Processes, events: Events, code: int
) -> None:
    [event_id] = events.add()
    with Receiver() as elsewhere:
        with Receiver(status(code, f"Location: {elsewhere.url}")) as receiver:
            worker = telling(processes, receiver)
            receiver.wait_for(2)
            receiver.act = answer()
            until(lambda: events.delivered() == 1, "the event to be delivered")
            assert set(receiver.event_ids()) == {str(event_id)}
        assert elsewhere.connections == 0
    [first, *_] = worker.lines("webhook.failed")
    assert (first["error"], first["dispatchAttempt"], first["eventId"]) == (
        f"HTTP {code}",
        1,
        str(event_id),
    )
    assert first["jobId"] == str(events.row(event_id)["job_id"])
    assert first["level"] == 40
    assert 25 <= first["retryInMs"] <= 50


def test_the_next_attempt_waits_for_its_time_and_not_for_the_next_look(
    processes: Processes, events: Events
) -> None:
    [event_id] = events.add()
    with Receiver(status(503)) as receiver:
        # Nor for the end of the lease, which is twice the time that a POST may take.
        seldom = {"WEBHOOK_POLL_INTERVAL_MS": SELDOM_MS, "WEBHOOK_TIMEOUT_MS": 60_000}
        telling(processes, receiver, **seldom)
        receiver.wait_for(3)
        receiver.act = answer()
        until(lambda: events.delivered() == 1, "the event to be delivered")
    assert set(receiver.event_ids()) == {str(event_id)}


def test_a_receiver_may_ask_for_more_time_than_the_backoff(
    processes: Processes, events: Events
) -> None:
    [event_id] = events.add()
    with Receiver(status(429, "Retry-After: 120")) as receiver:
        worker = telling(processes, receiver)
        until(lambda: worker.lines("webhook.failed"), "the failure to be recorded")
    row = events.row(event_id)
    waits = (row["next_attempt_at"] - row["occurred_at"]).total_seconds()
    assert worker.lines("webhook.failed")[0]["retryInMs"] == 120_000
    assert 120 <= waits < 180


def test_given_up_events_are_revived_and_arrive(
    processes: Processes, events: Events, database_url: str, tmp_path: Path
) -> None:
    [event_id] = events.add()
    with Receiver(status(500)) as receiver:
        worker = telling(processes, receiver, WEBHOOK_MAX_ATTEMPTS=3)
        until(lambda: events.row(event_id)["failed_at"], "the event to be given up")
        assert len(receiver.requests) == 3
        [given_up] = [line for line in worker.lines("webhook.failed") if line.get("gaveUp")]
        assert (given_up["level"], given_up["error"]) == (50, "HTTP 500")
        receiver.act = answer()
        run = Scripts(database_url, tmp_path).run("redrive", "--webhooks")
        assert run.line == {"redriven": 1, "remaining": 0}
        until(lambda: events.delivered() == 1, "the revived event to be delivered")
        assert receiver.event_ids() == [str(event_id)] * 4
    row = events.row(event_id)
    assert (row["dispatch_attempts"], row["forgiven_attempts"]) == (4, 3)


def test_two_workers_post_no_attempt_twice(processes: Processes, events: Events) -> None:
    with Receiver() as receiver:
        for name in ("one", "two"):
            telling(processes, receiver, WEBHOOK_URL=f"{receiver.url}/{name}")
        # Now that both look for them.
        events.add(500)
        until(lambda: events.delivered() == 500, "all to be delivered")
        assert len(receiver.requests) == len(set(receiver.event_ids())) == 500
        by_whom = {request.target for request in receiver.requests}
    assert by_whom == {"/hook/one", "/hook/two"}
    assert events.count("dispatch_attempts = 1") == 500


def test_a_receiver_that_is_down_holds_up_no_delivery_and_gets_everything_later(
    processes: Processes, jobs: Jobs, events: Events
) -> None:
    events.add(300)
    with Receiver(hang) as receiver:
        telling(processes, receiver, WEBHOOK_TIMEOUT_MS=500, WEBHOOK_MAX_ATTEMPTS=1000)
        # All places are taken at first. Then it is asked by one event at a time.
        receiver.wait_for(50)
        jobs.add(100)
        until(lambda: jobs.statuses() == {"SENT": 400}, "all jobs to be sent meanwhile")
        until(lambda: len(receiver.requests) >= 53, "the receiver to be asked again")
        asked = len(receiver.requests)
        assert asked < 60
        receiver.act = answer()
        until(lambda: events.delivered() == 400, "every event to arrive")
        assert len(set(receiver.event_ids())) == 400


def test_posts_on_their_way_hold_no_connection(
    processes: Processes, engine: Engine, events: Events
) -> None:
    events.add(200)
    with Receiver(hang) as receiver:
        # One connection is for listening; with the other one everything must go on.
        worker = telling(processes, receiver, DATABASE_POOL_MAX=2, WEBHOOK_TIMEOUT_MS=20_000)
        receiver.wait_for(50)
        assert connections(engine, WORKER) <= 2
        assert idle_in_transaction(engine, WORKER, longer_than_ms=200) == 0
        assert requests.get(f"{worker.url}/health", timeout=5).ok
        receiver.act = answer()


def test_answers_that_come_together_take_two_connections_at_most(
    processes: Processes, engine: Engine, events: Events
) -> None:
    events.add(50)
    answering = threading.Event()

    def wait(connection: Connection, _: Request) -> bool:
        answering.wait(20)
        connection.send(OK)
        return True

    with Receiver(wait) as receiver:
        telling(processes, receiver, DATABASE_POOL_MAX=10, WEBHOOK_TIMEOUT_MS=20_000)
        receiver.wait_for(50)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE webhook_events IN ACCESS EXCLUSIVE MODE"))
            answering.set()
            # All have been answered by then, and whoever wants to write them down hangs.
            until(lambda: waiting_for_a_lock(engine, WORKER, 0.5), "the recording to hang")
            assert waiting_for_a_lock(engine, WORKER) <= 2
        until(lambda: events.delivered() == 50, "all to be recorded")


def test_nothing_private_is_logged(processes: Processes, jobs: Jobs, events: Events) -> None:
    markers = ["hushpath", "hushquery", "hushrecipient", "hushpayload", SECRETS[0][6:]]
    with Receiver(status(500)) as receiver:
        worker = telling(
            processes,
            receiver,
            LOG_LEVEL="trace",
            WEBHOOK_URL=f"http://127.0.0.1:{receiver.port}/hushpath?token=hushquery",
            WEBHOOK_SECRET=SECRETS[0],
            WEBHOOK_MAX_ATTEMPTS=2,
        )
        jobs.add(1, recipient="hushrecipient@example.com", payload='{"a": "hushpayload"}')
        until(lambda: events.count("failed_at IS NOT NULL") == 1, "the event to be given up")
        assert receiver.requests[0].target == "/hushpath?token=hushquery"
        request = receiver.requests[0]
        told = json.loads(request.body)
    assert worker.stop() == 0
    # What was sent is nobody's business either, but for the ids.
    for marker in [*markers, told["timestamp"], request.headers["webhook-signature"]]:
        assert marker not in worker.text() + worker.errors()
    for marker in markers:
        assert marker not in request.body.decode()


def test_a_signal_lets_posts_on_their_way_end(processes: Processes, events: Events) -> None:
    events.add(3)

    def slow(connection: Connection, _: Request) -> bool:
        connection.hang(0.5)
        connection.send(OK)
        return True

    with Receiver(slow) as receiver:
        worker = telling(processes, receiver)
        receiver.wait_for(3)
        assert worker.stop(signal.SIGTERM) == 0
    assert events.delivered() == 3
    assert worker.lines()[-1]["abandonedWebhooks"] == 0


def test_a_signal_does_not_wait_for_a_receiver_that_never_answers(
    processes: Processes, events: Events
) -> None:
    events.add(3)
    with Receiver(hang) as receiver:
        worker = telling(
            processes, receiver, WEBHOOK_TIMEOUT_MS=60_000, WORKER_SHUTDOWN_TIMEOUT_MS=0
        )
        receiver.wait_for(3)
        assert worker.stop(signal.SIGTERM, deadline_s=15) == 0
    assert worker.lines()[-1]["abandonedWebhooks"] == 3
    # They come again when their leases end.
    assert events.count("leased_until IS NOT NULL AND delivered_at IS NULL") == 3
