"""Real connections racing for the same rows and the same keys."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Ended, Result
from notify_queue.domain.errors import KeyReusedError
from notify_queue.domain.job import Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered
from notify_queue.notifications.schedule import ScheduleNotification
from notify_queue.persistence.identity import new_id
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs, a_request

AGING = Aging(2, timedelta(seconds=300))


def at_once(count: int, act: Callable[[int], None]) -> None:
    """Run ``act`` in threads that start together; an error in any is an error here."""
    together = threading.Barrier(count)

    def run(number: int) -> None:
        together.wait(20)
        act(number)

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(run, number) for number in range(count)]:
            done.result(60)


def test_ten_claimers_share_the_jobs_and_claim_none_twice(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    for priority in Priority:
        jobs.add(200, priority=priority, due_in_s=-600)
    claimed: list[UUID] = []

    def work(_number: int) -> None:
        while True:
            with unit_of_work() as unit:
                due = unit.claims.lock_due(17, AGING)
                claims = unit.claims.claim(due, "w", uuid4()) if due else []
                unit.commit()
            if not claims:
                return
            claimed.extend(claim.job_id for claim in claims)

    at_once(10, work)
    assert len(claimed) == 600
    assert max(Counter(claimed).values()) == 1
    assert jobs.statuses() == {"PROCESSING": 600}


def test_a_naive_claim_would_hand_jobs_out_twice(engine: Engine, jobs: Jobs) -> None:
    """The control: without the row locks the very same race does what the test above denies."""
    jobs.add(50)
    claimed: list[UUID] = []
    read = threading.Barrier(5)

    def work(_number: int) -> None:
        with engine.begin() as connection:
            due = list(connection.scalars(text("SELECT job_id FROM job_queue")))
            read.wait(20)
        claimed.extend(due)

    at_once(5, work)
    assert max(Counter(claimed).values()) > 1


def test_completions_of_overlapping_batches_neither_deadlock_nor_count_twice(
    unit_of_work: UnitOfWorkFactory, jobs: Jobs
) -> None:
    jobs.add(200)
    with unit_of_work() as unit:
        claims = unit.claims.claim(unit.claims.lock_due(200, AGING), "w", uuid4())
        unit.commit()
    recorded: list[UUID] = []

    def work(number: int) -> None:
        # Every batch in another order.
        turned = claims[number * 20 :] + claims[: number * 20]
        results = [Result(claim, Delivered("m"), Ended(Status.SENT), 1) for claim in turned]
        with unit_of_work() as unit:
            won = unit.results.record(results, limited=False)
            unit.commit()
        recorded.extend(won)

    at_once(8, work)
    assert sorted(recorded) == sorted(claim.job_id for claim in claims)
    assert jobs.statuses() == {"SENT": 200}


@pytest.fixture
def schedule(unit_of_work: UnitOfWorkFactory) -> ScheduleNotification:
    return ScheduleNotification(
        unit_of_work,
        new_id,
        wall_clock=lambda: datetime(2030, 1, 1, tzinfo=UTC),
        hint=lambda _seconds: None,
        max_attempts=6,
    )


def test_identical_requests_at_once_make_one_job(
    schedule: ScheduleNotification, jobs: Jobs
) -> None:
    request = a_request()
    answers: list[tuple[bool, UUID]] = []

    def work(_number: int) -> None:
        made = schedule(request)
        answers.append((made.replayed, made.job.id))

    at_once(25, work)
    assert Counter(replayed for replayed, _ in answers) == {True: 24, False: 1}
    assert len({job_id for _, job_id in answers}) == 1
    assert jobs.one("SELECT count(*) FROM job_queue") == 1


def test_of_two_requests_racing_for_a_key_one_kind_wins_and_the_other_is_refused(
    schedule: ScheduleNotification,
) -> None:
    bodies = [
        a_request(idempotency_key="raced", recipient=recipient)
        for recipient in ("a@example.com", "b@example.com")
    ]
    answers: list[tuple[str, str]] = []

    def work(number: int) -> None:
        body = bodies[number % 2]
        try:
            made = schedule(body)
        except KeyReusedError:
            answers.append((body.recipient, "refused"))
        else:
            answers.append((body.recipient, "replayed" if made.replayed else "made"))

    at_once(50, work)
    [winner] = [recipient for recipient, answer in answers if answer == "made"]
    assert Counter(answer for recipient, answer in answers if recipient == winner) == {
        "made": 1,
        "replayed": 24,
    }
    assert {answer for recipient, answer in answers if recipient != winner} == {"refused"}
