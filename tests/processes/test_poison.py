"""A payload that kills whoever touches it is given up, and takes nobody along."""

import signal

from tests.support.jobs import Jobs
from tests.support.processes import Process
from tests.support.recording import EXPIRED, GRANTED, SHORT_LEASE, RecordingProvider
from tests.support.waiting import until

_MAX_ATTEMPTS = 2
# One attempt more than the budget, because nobody knows how the last one ended.
_DEATHS = _MAX_ATTEMPTS + 1
_POISON = '{"poison": true}'


class _Platform:
    """Starts the worker again whenever it has died, as a platform would."""

    def __init__(self, provider: RecordingProvider) -> None:
        self._provider = provider
        self.workers = [self._start()]

    def _start(self) -> Process:
        return self._provider.start(**SHORT_LEASE)

    def look(self) -> None:
        """Replace a dead worker."""
        if self.workers[-1].popen.poll() is not None:
            self.workers.append(self._start())

    def stop(self) -> Process:
        """End the last worker and return it; all before it were killed."""
        *killed, last = self.workers
        assert last.stop() == 0
        assert [worker.popen.returncode for worker in killed] == [-signal.SIGKILL] * _DEATHS
        return last


def test_a_payload_that_kills_its_worker_is_given_up_after_one_attempt_beyond_its_budget(
    provider: RecordingProvider, jobs: Jobs
) -> None:
    [poison] = jobs.add(max_attempts=_MAX_ATTEMPTS, payload=_POISON)
    platform = _Platform(provider)
    errors: list[str | None] = []

    def given_up() -> bool:
        platform.look()
        row = jobs.row(poison)
        if errors[-1:] != [row["last_error"]]:
            errors.append(row["last_error"])
        return str(row["status"]) == "DEAD_LETTERED"

    until(given_up, "the poison to be given up", 60)
    assert errors == [None, EXPIRED, GRANTED, EXPIRED]
    assert jobs.row(poison)["attempt_count"] == _DEATHS
    assert jobs.one("SELECT count(*) FROM job_queue") == 0
    [end] = platform.stop().lines("job.dead_letter")
    assert (end["jobId"], end["attempt"], end["error"]) == (str(poison), _DEATHS, EXPIRED)
    assert len(provider.calls("begun")) == _DEATHS


def test_the_neighbours_of_such_a_payload_are_delivered(
    provider: RecordingProvider, jobs: Jobs
) -> None:
    # First in every batch, and its neighbours have no larger budget than it has itself.
    [poison] = jobs.add(due_in_s=-60, max_attempts=_MAX_ATTEMPTS, payload=_POISON)
    jobs.add(10, max_attempts=_MAX_ATTEMPTS)
    platform = _Platform(provider)

    def done() -> bool:
        platform.look()
        return bool(jobs.one("SELECT count(*) FROM job_queue") == 0)

    until(done, "the queue to be empty", 60)
    assert jobs.row(poison)["status"] == "DEAD_LETTERED"
    assert jobs.statuses() == {"DEAD_LETTERED": 1, "SENT": 10}
    platform.stop()
