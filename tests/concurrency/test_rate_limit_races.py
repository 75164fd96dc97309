"""Workers that decide about the same recipients at once: nobody waits, and the limit is kept."""

import threading
from collections import Counter
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from notify_queue.domain.aging import Aging
from notify_queue.domain.errors import NotCancellableError
from notify_queue.domain.job import Priority
from notify_queue.notifications.cancel import CancelNotification
from notify_queue.persistence.unit_of_work import UnitOfWork, UnitOfWorkFactory
from notify_queue.worker.admit import ClaimWithinLimit
from notify_queue.worker.claim import BUSY_S
from tests.support.jobs import Jobs
from tests.support.limited import HOUR_S, Limited, let_pass
from tests.support.load import at_once

A, B = "a@example.com", "b@example.com"
STRICT = Aging(0, timedelta(seconds=300))


def claim_in(unit: UnitOfWork, limited: Limited, seats: int) -> list[UUID]:
    """Claim as a worker does, in a transaction that goes on."""
    claim = partial(unit.claims.claim, worker_id="hangs", token=uuid4())
    done = ClaimWithinLimit(unit, limited.limit, STRICT, claim).due(seats)
    return [each.job_id for each in done.claims]


def test_claimers_at_once_never_admit_more_than_the_limit(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    three = Limited(unit_of_work, 3)

    def claim() -> list[str]:
        return [each.recipient for _ in range(3) for each in three.claim(5)]

    for number in range(10):
        recipients = [f"{number}-{n}@example.com" for n in range(3)]
        for recipient in recipients:
            jobs.add(8, recipient=recipient)

        claimed = Counter(who for claims in at_once([claim] * 4) for who in claims)
        assert max(claimed.values()) <= 3
        # Who was left to somebody else is not forgotten.
        while batch := three.claim():
            claimed.update(each.recipient for each in batch)
        assert claimed == dict.fromkeys(recipients, 3)


def test_openers_at_once_let_no_more_go_than_there_are_slots(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    two = Limited(unit_of_work, 2)
    jobs.add(24, recipient=A)
    for number in range(1, 11):
        sent = [each for some in at_once([partial(two.send, 5)] * 4) for each in some]
        while some := two.send():
            sent += some
        assert len(set(sent)) == len(sent) == 2
        assert jobs.statuses()["SENT"] == 2 * number
        let_pass(jobs, HOUR_S)


def test_two_that_hold_each_others_recipients_neither_wait_nor_deadlock(
    unit_of_work: UnitOfWorkFactory,
) -> None:
    """The second statement of each goes for what the other one has locked in its first.

    With locks that are waited for the server would end one of the two after a second.
    """
    both_hold = threading.Barrier(2)
    both_tried = threading.Barrier(2)

    def take(mine: str, theirs: str) -> tuple[set[str], set[str]]:
        with unit_of_work() as unit:
            first = unit.recipients.try_lock({mine})
            both_hold.wait(10)
            second = unit.recipients.try_lock({theirs, mine})
            # Neither ends before the other has its answer, so nobody can have waited for it.
            both_tried.wait(10)
        return first, second

    assert at_once([partial(take, A, B), partial(take, B, A)]) == [({A}, {A}), ({B}, {B})]


def test_passes_that_cross_each_other_all_end_and_keep_the_limit(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    """Each pass locks recipients twice, the second time for the jobs behind those it parked."""
    one = Limited(unit_of_work, 1)
    recipients = [f"{n}@example.com" for n in range(12)]
    for recipient in recipients:
        jobs.add(10, recipient=recipient)
    jobs.run("UPDATE job_queue SET due_at = now() - make_interval(secs => random() * 100)")

    def work() -> list[str]:
        return [each.recipient for _ in range(12) for each in one.claim(4)]

    claimed = Counter(who for claims in at_once([work] * 6) for who in claims)
    while batch := one.claim():
        claimed.update(each.recipient for each in batch)
    assert claimed == dict.fromkeys(recipients, 1)


def test_a_claimer_that_hangs_holds_up_nobody_but_its_own_recipients(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    one = Limited(unit_of_work, 1)
    jobs.add(700, recipient=A, priority=Priority.HIGH)
    [other] = jobs.add(recipient=B, priority=Priority.LOW)
    with unit_of_work() as hanging:
        [held] = claim_in(hanging, one, seats=1)
        batch = one.batch()
        assert [claim.job_id for claim in batch.claims] == [other]
        # Left as they were, for a look in a moment.
        assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 0
        assert batch.next_due_s == BUSY_S
        hanging.commit()
    assert one.claim() == []
    assert one.claim() == []
    assert jobs.row(held)["status"] == "PROCESSING"
    assert jobs.one("SELECT count(*) FROM job_queue WHERE rate_limited") == 699


def test_a_claimer_that_dies_leaves_its_recipients_as_they_were(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    one = Limited(unit_of_work, 1)
    jobs.add(5, recipient=A)
    with unit_of_work() as dying:
        assert len(claim_in(dying, one, seats=5)) == 1
    assert jobs.one("SELECT count(*) FROM rate_limit_gates") == 0
    assert len(one.claim()) == 1


def test_a_gate_that_somebody_is_at_keeps_no_worker_busy(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    one = Limited(unit_of_work, 1)
    jobs.park(*jobs.add(5, recipient=A))
    let_pass(jobs, HOUR_S)
    with unit_of_work() as hanging:
        assert hanging.recipients.try_lock({A}) == {A}
        for seats in (1, 100):
            batch = one.batch(seats)
            assert (batch.claims, batch.next_due_s) == ([], BUSY_S)
    assert len(one.claim()) == 1


def test_a_decision_sees_what_whoever_had_the_lock_before_has_committed(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    """Also when its own transaction began before that."""
    one = Limited(unit_of_work, 1)
    jobs.add(2, recipient=A)
    with unit_of_work() as unit:
        unit.reading.now()
        assert len(one.send(1)) == 1
        assert claim_in(unit, one, seats=1) == []


def test_a_parked_job_is_either_cancelled_or_claimed(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    ten = Limited(unit_of_work, 10)
    parked = jobs.add(200, recipient=A)
    jobs.park(*parked)
    cancel = CancelNotification(unit_of_work)
    over = threading.Event()
    claimed: list[UUID] = []
    cancelled: list[UUID] = []

    def open_gate() -> None:
        while not over.is_set():
            let_pass(jobs, HOUR_S)
            claimed.extend(ten.send(7))

    def cancel_all() -> None:
        for job_id in reversed(parked):
            try:
                cancel(job_id)
            except NotCancellableError:
                continue
            cancelled.append(job_id)
        over.set()

    at_once([open_gate, cancel_all])
    assert sorted(claimed + cancelled) == sorted(parked)
    assert Counter(jobs.statuses()) == Counter(SENT=len(claimed), CANCELLED=len(cancelled))
    let_pass(jobs, HOUR_S)
    assert ten.claim() == []
    assert jobs.one("SELECT count(*) FROM rate_limit_gates") == 0
