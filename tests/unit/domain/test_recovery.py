"""What becomes of a job whose lease has ended: requeued, granted one attempt more, or ended."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.recovery import ExpiredClaim, Recovery, Requeue, recover

EXPIRED = "Claim expired after 60s without completion"
UNKNOWN = (
    "Final attempt's claim expired after 60s; outcome unknown, one reconciliation attempt granted"
)


def expired(attempt: int, max_attempts: int, *, granted: bool = False) -> ExpiredClaim:
    return ExpiredClaim(uuid4(), uuid4(), "worker-1", attempt, max_attempts, granted)


@pytest.mark.parametrize(
    ("attempt", "max_attempts", "granted", "recovery"),
    [
        (1, 6, False, Requeue(EXPIRED)),
        (5, 6, False, Requeue(EXPIRED)),
        (6, 6, False, Requeue(UNKNOWN, reconcile=True)),
        (1, 1, False, Requeue(UNKNOWN, reconcile=True)),
        (7, 7, True, Ended(Status.DEAD_LETTERED, EXPIRED)),
        # The granted attempt was refunded when its worker stopped: it is still to be made.
        (6, 7, True, Requeue(EXPIRED)),
    ],
)
def test_each_expired_claim_has_one_end(
    attempt: int, max_attempts: int, *, granted: bool, recovery: Recovery
) -> None:
    assert recover(expired(attempt, max_attempts, granted=granted), 60) == recovery


@given(max_attempts=st.integers(1, 50))
def test_a_job_that_kills_every_worker_is_handed_out_once_more_than_its_budget(
    max_attempts: int,
) -> None:
    attempt, budget, granted = 0, max_attempts, False
    while True:
        attempt += 1
        recovery = recover(expired(attempt, budget, granted=granted), 60)
        if isinstance(recovery, Ended):
            break
        budget += recovery.reconcile
        granted = granted or recovery.reconcile
    assert attempt == max_attempts + 1
