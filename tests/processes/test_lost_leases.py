"""A worker that was away for longer than its lease comes back and changes nothing."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from tests.support.faults import WORKER, waiting_for_a_lock
from tests.support.held import (
    ACCEPTANCE_COMMIT,
    CLAIM_COMMIT,
    FLUSH_STATEMENT,
    held,
    provider_hangs,
)
from tests.support.jobs import Jobs
from tests.support.processes import Process
from tests.support.recording import Crew, RecordingProvider
from tests.support.waiting import until


def _frozen_in(
    moment: AbstractContextManager[None], late: Process, jobs: Jobs, engine: Engine
) -> UUID:
    """Give the worker a job, and freeze it for the rest of that moment and longer."""
    with moment:
        [job_id] = jobs.add()
        until(lambda: waiting_for_a_lock(engine, WORKER) == 1, "the worker to be held")
        late.popen.send_signal(signal.SIGSTOP)
    return job_id


def _sent_by_another(jobs: Jobs, late: Process, job_id: UUID, event: str) -> None:
    """Wait until it is sent, thaw the late worker and see that it changes nothing."""
    until(lambda: jobs.statuses() == {"SENT": 1}, "another worker to deliver", 30)
    as_sent = jobs.row(job_id)
    late.popen.send_signal(signal.SIGCONT)
    [line] = until(lambda: late.lines(event), "the late worker to notice")
    assert (line["jobId"], line["attempt"]) == (str(job_id), 1)
    assert late.stop() == 0
    assert not late.lines("job.sent")
    assert jobs.row(job_id) == as_sent
    assert as_sent["attempt_count"] == 2
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 1


@pytest.mark.parametrize(
    ("moment", "story"),
    [
        (provider_hangs, ["eager begun", "rescuer begun", "rescuer accepted"]),
        (
            partial(held, moment=ACCEPTANCE_COMMIT),
            ["eager begun", "rescuer begun", "rescuer duplicate"],
        ),
    ],
    ids=["in the call", "accepted"],
)
def test_a_result_that_comes_after_the_lease_is_not_written(
    provider: RecordingProvider,
    jobs: Jobs,
    engine: Engine,
    crew: Crew,
    moment: Callable[[Engine], AbstractContextManager[None]],
    story: list[str],
) -> None:
    job_id = _frozen_in(moment(engine), crew.eager, jobs, engine)
    _sent_by_another(jobs, crew.eager, job_id, "job.claim_lost")
    assert crew.eager.lines("job.claim_lost")[0]["stage"] == "complete"
    # What the late worker heard of its own call depends on which of its timers went off first.
    assert provider.story(job_id, crew)[: len(story)] == story


def test_a_late_result_leaves_alone_the_claim_that_another_worker_holds_now(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, crew: Crew
) -> None:
    job_id = _frozen_in(provider_hangs(engine), crew.eager, jobs, engine)
    with held(engine, ACCEPTANCE_COMMIT):
        until(lambda: jobs.row(job_id)["locked_by"] == "rescuer", "the rescuer to claim")
        until(lambda: waiting_for_a_lock(engine, WORKER) == 1, "its delivery to hang")
        claimed = jobs.row(job_id)
        crew.eager.popen.send_signal(signal.SIGCONT)
        [line] = until(lambda: crew.eager.lines("job.claim_lost"), "the late worker to notice")
        assert (line["jobId"], line["attempt"]) == (str(job_id), 1)
        assert jobs.row(job_id) == claimed
    until(lambda: jobs.statuses() == {"SENT": 1}, "the rescuer to deliver")
    assert jobs.row(job_id)["attempt_count"] == 2
    assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 1


def test_a_worker_frozen_in_its_flush_cannot_keep_the_job(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, crew: Crew
) -> None:
    # Its transaction stays open and holds the rows, until the server ends it for doing nothing.
    job_id = _frozen_in(held(engine, FLUSH_STATEMENT), crew.eager, jobs, engine)
    _sent_by_another(jobs, crew.eager, job_id, "job.claim_lost")
    assert provider.story(job_id, crew) == [
        "eager begun",
        "eager accepted",
        "rescuer begun",
        "rescuer duplicate",
    ]


def test_a_job_whose_lease_ended_before_the_call_is_not_called(
    provider: RecordingProvider, jobs: Jobs, engine: Engine, crew: Crew
) -> None:
    job_id = _frozen_in(held(engine, CLAIM_COMMIT), crew.eager, jobs, engine)
    _sent_by_another(jobs, crew.eager, job_id, "worker.lease_too_short")
    assert provider.story(job_id, crew) == [
        "rescuer begun",
        "rescuer accepted",
    ]
