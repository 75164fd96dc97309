"""A claim takes what can start now and says when to look again."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim
from notify_queue.domain.job import Priority
from notify_queue.worker.claim import ClaimDueJobs
from tests.unit.worker.conftest import ManualClock
from tests.unit.worker.in_memory import InMemoryClaims, InMemoryQueue, a_claim


def step(queue: InMemoryQueue) -> ClaimDueJobs:
    return ClaimDueJobs(
        unit_of_work=queue,
        worker_id="worker-1",
        visibility_timeout_s=60,
        aging_share=0.1,
        aging_after=timedelta(seconds=300),
        new_token=uuid4,
    )


def test_a_full_batch_says_that_more_may_be_due_already(queue: InMemoryQueue) -> None:
    queue.add(3)
    queue.next_due_s = 5.0
    batch = step(queue)(2)
    assert len(batch.claims) == 2
    assert batch.next_due_s == 0


def test_a_batch_that_was_not_filled_says_when_the_next_job_is_due(queue: InMemoryQueue) -> None:
    queue.add(1)
    queue.next_due_s = 5.0
    batch = step(queue)(2)
    assert len(batch.claims) == 1
    assert batch.next_due_s == 5


def test_an_empty_queue_gives_an_empty_batch_and_no_time(queue: InMemoryQueue) -> None:
    batch = step(queue)(2)
    assert batch.claims == []
    assert batch.next_due_s is None


def test_every_batch_has_one_token_of_its_own(queue: InMemoryQueue) -> None:
    queue.add(4)
    claim = step(queue)
    first, second = claim(2), claim(2)
    tokens = [{each.token for each in batch.claims} for batch in (first, second)]
    assert [len(each) for each in tokens] == [1, 1]
    assert tokens[0] != tokens[1]


def test_the_claim_is_committed(queue: InMemoryQueue) -> None:
    queue.add(1)
    step(queue)(1)
    assert queue.commits == 1


def test_the_share_for_aged_jobs_goes_with_the_batch(queue: InMemoryQueue) -> None:
    step(queue)(50)
    assert queue.aging == [Aging(5, timedelta(seconds=300))]


def test_the_lease_counts_from_before_the_claim(queue: InMemoryQueue, clock: ManualClock) -> None:
    queue.add(1)
    queue.on_commit = lambda: clock.advance(3)
    batch = step(queue)(1)
    assert batch.lease.left_ms == 57_000


def test_claims_come_most_urgent_first_and_longest_due_first_within_one(
    queue: InMemoryQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = a_claim(priority=Priority.LOW, due_in_s=-60)
    late, early = (a_claim(priority=Priority.HIGH, due_in_s=due) for due in (2, 1))

    def claim(*_: object) -> list[Claim]:
        return [late, low, early]

    monkeypatch.setattr(InMemoryClaims, "claim", claim)
    queue.waiting = [UUID(int=1)]
    assert step(queue)(3).claims == [early, late, low]
