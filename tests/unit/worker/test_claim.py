"""A claim takes what can start now and says when to look again."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Claim
from notify_queue.domain.job import Priority
from notify_queue.domain.rate_limit import RateLimit, Slot
from notify_queue.worker.claim import BUSY_S, ClaimDueJobs
from tests.unit.worker.conftest import ManualClock, Said
from tests.unit.worker.in_memory import NOW, RECIPIENT, InMemoryClaims, InMemoryQueue, a_claim

ONE_A_MINUTE = RateLimit(1, timedelta(minutes=1))


def step(queue: InMemoryQueue, rate_limit: RateLimit | None = None) -> ClaimDueJobs:
    return ClaimDueJobs(
        unit_of_work=queue,
        worker_id="worker-1",
        visibility_timeout_s=60,
        aging_share=0.1,
        aging_after=timedelta(seconds=300),
        new_token=uuid4,
        rate_limit=rate_limit,
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


def test_without_a_limit_nobody_looks_at_slots(queue: InMemoryQueue) -> None:
    queue.slots = [Slot(RECIPIENT, uuid4(), None)]
    queue.busy = True
    queue.add(2)
    assert len(step(queue)(5).claims) == 2


def test_who_is_over_the_limit_is_parked_and_said_so_once(queue: InMemoryQueue, said: Said) -> None:
    queue.add(3)
    first, *others = queue.waiting
    claim = step(queue, ONE_A_MINUTE)
    assert [each.job_id for each in claim(5).claims] == [first]
    queue.slots = [Slot(RECIPIENT, first, None)]
    claim(5)
    assert queue.parked == others
    expected = {
        "level": "INFO",
        "workerId": "worker-1",
        "attempt": 1,
        "retryAt": "2026-03-01T12:01:00.000Z",
    }
    lines = said("job.rate_limited")
    assert [each["jobId"] for each in lines] == [str(each) for each in others]
    for line in lines:
        assert line.items() >= expected.items()


def test_a_parked_job_that_finds_its_slot_taken_again_is_not_reported_again(
    queue: InMemoryQueue, said: Said
) -> None:
    queue.add(2)
    due, parked = queue.waiting
    queue.waiting, queue.parked = [due], [parked]
    assert [each.job_id for each in step(queue, ONE_A_MINUTE)(5).claims] == [due]
    assert queue.parked == [parked]
    assert said("job.rate_limited") == []


def test_a_parked_job_is_claimed_once_its_slot_is_free(queue: InMemoryQueue) -> None:
    parked = uuid4()
    queue.parked = [parked]
    assert [each.job_id for each in step(queue, ONE_A_MINUTE)(5).claims] == [parked]


def test_parking_is_reported_after_the_commit(queue: InMemoryQueue, said: Said) -> None:
    queue.add(2)
    before: list[object] = []
    queue.on_commit = lambda: before.extend(said("job.rate_limited"))
    step(queue, ONE_A_MINUTE)(5)
    assert before == []
    assert len(said("job.rate_limited")) == 1


def test_parking_that_could_not_be_committed_is_not_reported(
    queue: InMemoryQueue, said: Said
) -> None:
    queue.add(2)
    queue.fails_with = ConnectionError("the database is away")
    with pytest.raises(ConnectionError):
        step(queue, ONE_A_MINUTE)(5)
    assert said("job.rate_limited") == []


def test_jobs_of_a_recipient_whom_somebody_else_decides_about_stay_due_for_a_moment(
    queue: InMemoryQueue, said: Said
) -> None:
    queue.add(2)
    queue.busy = True
    queue.next_due_s = 5.0
    waiting = list(queue.waiting)
    batch = step(queue, ONE_A_MINUTE)(5)
    assert (batch.claims, queue.waiting, queue.parked) == ([], waiting, [])
    assert batch.next_due_s == BUSY_S
    assert said("job.rate_limited") == []


@pytest.mark.parametrize(
    ("job_s", "gate_s", "next_s"),
    [(5, 2, 2), (2, 5, 2), (None, 2, 2), (2, None, 2), (None, None, None), (5, 0, 0)],
)
def test_the_next_look_is_when_a_job_is_due_or_a_gate_may_open(
    queue: InMemoryQueue, job_s: float | None, gate_s: float | None, next_s: float | None
) -> None:
    queue.next_due_s, queue.next_gate_s = job_s, gate_s
    assert step(queue, ONE_A_MINUTE)(5).next_due_s == next_s


def test_a_suspect_over_the_limit_is_parked_and_said_so(queue: InMemoryQueue, said: Said) -> None:
    queue.add(1)
    [suspect] = queue.waiting
    queue.suspects = {suspect}
    queue.slots = [Slot(RECIPIENT, uuid4(), NOW - timedelta(seconds=15))]
    assert step(queue, ONE_A_MINUTE).suspect().claims == []
    assert queue.parked == [suspect]
    [line] = said("job.rate_limited")
    assert line["jobId"] == str(suspect)
    assert line["retryAt"] == "2026-03-01T12:00:45.000Z"


def test_a_parked_suspect_takes_its_slot_and_goes_back_to_be_tried_alone(
    queue: InMemoryQueue,
) -> None:
    suspect = uuid4()
    queue.parked, queue.suspects = [suspect], {suspect}
    assert step(queue, ONE_A_MINUTE)(5).claims == []
    assert (queue.parked, queue.waiting, queue.reserved) == ([], [suspect], [[suspect]])
