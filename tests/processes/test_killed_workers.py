"""A worker that is killed costs time and not jobs, at whatever moment it dies."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from notify_queue.maintenance.recover import PASS_SIZE
from tests.support.faults import WORKER, waiting_for_a_lock
from tests.support.held import (
    ACCEPTANCE_COMMIT,
    CLAIM_COMMIT,
    FLUSH_COMMIT,
    FLUSH_STATEMENT,
    held,
    provider_hangs,
)
from tests.support.jobs import Jobs
from tests.support.processes import Process
from tests.support.recording import EAGER, EXPIRED, RESCUER, Crew, RecordingProvider
from tests.support.waiting import until


def _kill(worker: Process) -> None:
    assert worker.stop(signal.SIGKILL) == -signal.SIGKILL


def _held(engine: Engine, count: int = 1) -> None:
    until(lambda: waiting_for_a_lock(engine, WORKER) == count, "the worker to be held")


@pytest.mark.parametrize(
    ("moment", "story"),
    [
        (partial(held, moment=CLAIM_COMMIT), ["rescuer begun", "rescuer accepted"]),
        (provider_hangs, ["eager begun", "rescuer begun", "rescuer accepted"]),
        (
            partial(held, moment=ACCEPTANCE_COMMIT),
            ["eager begun", "rescuer begun", "rescuer duplicate"],
        ),
        (
            partial(held, moment=FLUSH_STATEMENT),
            ["eager begun", "eager accepted", "rescuer begun", "rescuer duplicate"],
        ),
    ],
    ids=["claimed, not called", "in the call", "accepted, not recorded", "in the flush"],
)
def test_a_job_whose_worker_is_killed_is_sent_once_by_another(
    provider: RecordingProvider,
    jobs: Jobs,
    engine: Engine,
    crew: Crew,
    moment: Callable[[Engine], AbstractContextManager[None]],
    story: list[str],
) -> None:
    with moment(engine):
        [job_id] = jobs.add()
        due_at = jobs.row(job_id)["next_attempt_at"]
        _held(engine)
        _kill(crew.eager)
    _assert_taken_back_in_its_place(jobs, engine, job_id, due_at)

    until(lambda: jobs.statuses() == {"SENT": 1}, "the job to be sent")
    assert jobs.row(job_id)["attempt_count"] == 2
    assert provider.story(job_id, crew) == story
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 1
    assert crew.rescuer.stop() == 0
    [recovered] = crew.rescuer.lines("job.recovered")
    assert (recovered["jobId"], recovered["lostBy"]) == (str(job_id), "eager")
    assert (recovered["attempt"], recovered["reconcile"]) == (1, False)
    [sent] = crew.rescuer.lines("job.sent")
    assert (sent["attempt"], sent["duplicate"]) == (2, story[-1] == "rescuer duplicate")
    assert not crew.eager.lines("job.sent")


def _assert_taken_back_in_its_place(jobs: Jobs, engine: Engine, job_id: UUID, due_at: Any) -> None:
    """Look at the job between its recovery and its next claim, which is held for that."""
    with held(engine, CLAIM_COMMIT):
        until(lambda: jobs.row(job_id)["status"] == "PROCESSING", "the job to be held")
        until(lambda: jobs.row(job_id)["status"] == "PENDING", "the job to be taken back")
        waiting = jobs.row(job_id)
    assert waiting["next_attempt_at"] == due_at
    assert (waiting["attempt_count"], waiting["max_attempts"]) == (1, 6)
    assert waiting["last_error"] == EXPIRED


def test_a_worker_killed_with_its_last_commit_on_the_way_has_finished(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, crew: Crew
) -> None:
    with held(engine, FLUSH_COMMIT):
        [job_id] = jobs.add()
        _held(engine)
        _kill(crew.eager)
    until(lambda: jobs.statuses() == {"SENT": 1}, "the commit to arrive")
    assert jobs.row(job_id)["attempt_count"] == 1
    assert jobs.one("SELECT count(*) FROM job_queue") == 0
    assert crew.rescuer.stop() == 0
    assert not crew.rescuer.lines("job.recovered")
    assert provider.story(job_id, crew) == ["eager begun", "eager accepted"]


def test_five_running_and_twenty_claimed_jobs_end_sent_on_other_workers(
    provider: RecordingProvider, jobs: Jobs, engine: Engine
) -> None:
    rescuers = [provider.running(**RESCUER) for _ in range(2)]
    victim = provider.running(**EAGER)
    with held(engine, ACCEPTANCE_COMMIT):
        running = jobs.add(5)
        until(lambda: len(provider.calls("begun")) == 5, "five deliveries to run")
        _held(engine)
        with held(engine, CLAIM_COMMIT):
            claimed = jobs.add(20)
            _held(engine, 2)
            _kill(victim)
    until(lambda: jobs.statuses() == {"PROCESSING": 25}, "the claim to be committed")

    until(lambda: jobs.statuses() == {"SENT": 25}, "every job to be sent")
    assert jobs.one("SELECT count(*) FROM job_queue") == 0
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 25
    assert jobs.one("SELECT count(*) FROM notification_jobs WHERE attempt_count <> 2") == 0
    assert [rescuer.stop() for rescuer in rescuers] == [0, 0]
    sent = [line for rescuer in rescuers for line in rescuer.lines("job.sent")]
    assert {line["jobId"] for line in sent if line["duplicate"]} == set(map(str, running))
    assert {line["jobId"] for line in sent if not line["duplicate"]} == set(map(str, claimed))
    assert len(sent) == 25


def test_recovery_looks_when_the_lease_ends_whatever_its_interval(
    provider: RecordingProvider, jobs: Jobs, engine: Engine
) -> None:
    dying = provider.running(**EAGER)
    with provider_hangs(engine):
        jobs.add()
        _held(engine)
        _kill(dying)
        provider.running(**{**EAGER, "WORKER_RECOVERY_INTERVAL_MS": 86_400_000})
    until(lambda: jobs.statuses() == {"SENT": 1}, "the job to be taken back and sent")


def test_recovery_goes_on_until_none_is_left_whatever_its_interval(
    provider: RecordingProvider, jobs: Jobs
) -> None:
    jobs.add(2 * PASS_SIZE + 1)
    jobs.run(
        "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'gone',"
        " locked_at = now() - interval '1 day', attempt_count = 1,"
        " due_at = now() + interval '1 day'"
    )
    worker = provider.running(**{**EAGER, "WORKER_RECOVERY_INTERVAL_MS": 86_400_000})
    until(lambda: jobs.statuses() == {"PENDING": 2 * PASS_SIZE + 1}, "all to be taken back")
    assert [line["requeued"] for line in worker.lines("jobs.recovered")] == [500, 500, 1]
