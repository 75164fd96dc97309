"""One attempt: what is sent, under which time it is signed, and what follows from the answer."""

import time
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from notify_queue.delivery.lease import Lease
from notify_queue.domain.signature import sign
from notify_queue.domain.webhook_event import (
    Answer,
    Answered,
    Dispatch,
    GivenUp,
    NoAnswer,
    Received,
    TryAgain,
    Verdict,
    body_of,
)
from notify_queue.webhooks.send import SendEvent
from tests.unit.webhooks.in_memory import (
    BACKOFF,
    LEASE_S,
    MAX_ATTEMPTS,
    NOW,
    ScriptedPost,
    a_dispatch,
)
from tests.unit.worker.conftest import ManualClock

NEW, OLD = b"n" * 32, b"o" * 24


def sender(post: ScriptedPost, *, secrets: Sequence[bytes] = (), random: float = 0) -> SendEvent:
    """Make the step on a scripted receiver."""
    return SendEvent(post, secrets, LEASE_S, MAX_ATTEMPTS, BACKOFF, lambda: random)


def sent_headers(
    dispatch: Dispatch, clock: ManualClock, secrets: Sequence[bytes]
) -> dict[str, str]:
    """Send at once and return the headers."""
    post = ScriptedPost()
    sender(post, secrets=secrets)(dispatch, Lease(clock.now + LEASE_S))
    ((_, headers),) = post.sent
    return headers


def test_without_a_secret_the_event_goes_out_under_its_id_alone(clock: ManualClock) -> None:
    post, dispatch = ScriptedPost(), a_dispatch()
    posted = sender(post)(dispatch, Lease(clock.now + LEASE_S))
    event_id = str(dispatch.event.event_id)
    assert post.sent == [(body_of(dispatch.event), {"X-Webhook-Event-Id": event_id})]
    assert (posted.dispatch, posted.answer, posted.verdict) == (
        dispatch,
        Answered(200),
        Received(),
    )


def test_with_secrets_it_is_signed_for_each_under_the_same_id(clock: ManualClock) -> None:
    dispatch = a_dispatch()
    event_id, timestamp = str(dispatch.event.event_id), int(NOW.timestamp())
    assert sent_headers(dispatch, clock, [NEW, OLD]) == {
        "X-Webhook-Event-Id": event_id,
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(event_id, timestamp, body_of(dispatch.event), [NEW, OLD]),
    }


@pytest.mark.parametrize("known", [NEW, OLD])
def test_the_very_bytes_that_are_sent_are_those_that_verify(
    clock: ManualClock, known: bytes
) -> None:
    post = ScriptedPost()
    # The library looks at this machine's clock.
    dispatch = a_dispatch(taken_at=datetime.fromtimestamp(time.time(), UTC))
    sender(post, secrets=[NEW, OLD])(dispatch, Lease(clock.now + LEASE_S))
    ((body, headers),) = post.sent
    receiver = Webhook(f"whsec_{b64encode(known).decode()}")
    assert receiver.verify(body, headers)["eventId"] == str(dispatch.event.event_id)
    with pytest.raises(WebhookVerificationError):
        receiver.verify(body.replace(b":", b": ", 1), headers)


@pytest.mark.parametrize(("waited_s", "later_s"), [(0, 0), (0.5, 0), (0.7, 1), (3.7, 4), (9.5, 9)])
@pytest.mark.parametrize("taken_at", [NOW, NOW + timedelta(days=400)])
def test_the_time_is_the_databases_and_what_has_passed_since(
    clock: ManualClock, taken_at: datetime, waited_s: float, later_s: int
) -> None:
    """The event was taken at 0.4 s past a full second."""
    post, lease = ScriptedPost(), Lease(clock.now + LEASE_S)
    clock.advance(waited_s)
    sender(post, secrets=[NEW])(a_dispatch(taken_at=taken_at), lease)
    ((_, headers),) = post.sent
    assert headers["webhook-timestamp"] == str(int(taken_at.timestamp()) + later_s)


@pytest.mark.parametrize(
    ("answer", "attempt", "spent", "verdict"),
    [
        (Answered(204), 10, 10, Received()),
        (Answered(500), 2, 2, TryAgain(1_500, "HTTP 500")),
        (Answered(503, wait_s=120), 2, 2, TryAgain(120_000, "HTTP 503")),
        (NoAnswer("ECONNREFUSED"), 10, 10, GivenUp("ECONNREFUSED")),
        # Revived after ten attempts: the wait and the end are those of a new budget.
        (NoAnswer("ECONNREFUSED"), 12, 2, TryAgain(1_500, "ECONNREFUSED")),
        (NoAnswer("ECONNREFUSED"), 20, 10, GivenUp("ECONNREFUSED")),
    ],
)
def test_the_verdict_is_by_what_is_spent_of_the_budget(
    clock: ManualClock, answer: Answer, attempt: int, spent: int, verdict: Verdict
) -> None:
    send = sender(ScriptedPost(lambda: answer), random=0.5)
    posted = send(a_dispatch(attempt=attempt, spent=spent), Lease(clock.now + LEASE_S))
    assert (posted.answer, posted.verdict) == (answer, verdict)
