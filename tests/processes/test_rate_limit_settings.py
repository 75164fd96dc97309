"""The limit as it is set, and what a restart with another one does."""

from tests.support.jobs import Jobs
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_QUIET: dict[str, str | float] = {"MOCK_FAILURE_RATE": 0, "MOCK_LATENCY_MS": 0}


def _worker(processes: Processes, most: int | str) -> Process:
    """Start a worker; "" leaves the limit at its default, ten an hour."""
    return processes.running("worker", **_QUIET, RATE_LIMIT_MAX_NOTIFICATIONS=most)


def _until_sent(jobs: Jobs, sent: int) -> None:
    """Wait until so many of the thirteen are sent, and the others parked."""
    parked = "SELECT count(*) FROM job_queue WHERE rate_limited"
    until(lambda: jobs.statuses() == {"SENT": sent, "PENDING": 13 - sent}, f"{sent} to be sent")
    until(lambda: jobs.one(parked) == 13 - sent, "the others to be parked")


def test_a_restart_with_another_limit_lets_go_what_that_one_allows(
    processes: Processes, jobs: Jobs
) -> None:
    jobs.add(13, recipient="user@example.com")
    for most, sent in (("", 10), (11, 11), (5, 11)):
        worker = _worker(processes, most)
        _until_sent(jobs, sent)
        assert worker.stop() == 0
        assert len(worker.lines("job.rate_limited")) == (3 if most == "" else 0)
    off = _worker(processes, 0)
    until(lambda: jobs.statuses() == {"SENT": 13}, "the rest to be sent")
    until(lambda: jobs.one("SELECT count(*) FROM rate_limit_gates") == 0, "the gate to be closed")
    assert off.stop() == 0
    assert [line["count"] for line in off.lines("jobs.unparked")] == [2]
    # What was sent without a limit took no slot.
    assert jobs.one("SELECT count(*) FROM rate_limit_reservations") == 11
