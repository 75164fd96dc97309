"""Workers whose provider notes every call, and a look at what it has noted."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tests.support.processes import Process, Processes

# Room for a test to act while a call or a transaction is held, and no longer to wait than needed.
LEASE_S = 4
SHORT_LEASE: Mapping[str, str | float] = {
    "JOB_VISIBILITY_TIMEOUT_SECONDS": LEASE_S,
    "PROVIDER_TIMEOUT_MS": 1900,
    "WORKER_RECOVERY_INTERVAL_MS": 1000,
}
EAGER: Mapping[str, str | float] = {**SHORT_LEASE, "WORKER_POLL_INTERVAL_MS": 50}
# It looks at the queue when it starts and when it has recovered something, never by itself: what is
# added later is left to others until they fail.
RESCUER: Mapping[str, str | float] = {**SHORT_LEASE, "WORKER_POLL_INTERVAL_MS": 60_000}

EXPIRED = f"Claim expired after {LEASE_S}s without completion"
GRANTED = (
    f"Final attempt's claim expired after {LEASE_S}s; outcome unknown,"
    " one reconciliation attempt granted"
)


class Call(NamedTuple):
    """What the provider noted: ``begun``, then ``accepted``, ``duplicate`` or ``refused``."""

    time: float
    key: str
    event: str
    pid: int


class Crew(NamedTuple):
    """One worker for the bad times, and one that gets every new job."""

    rescuer: Process
    eager: Process


class RecordingProvider:
    """Starts workers that share one call log."""

    def __init__(self, processes: Processes, log: Path) -> None:
        self._processes = processes
        self._log = log

    def start(self, **settings: str | float) -> Process:
        """Start a worker on this provider, fast and without bad luck unless told otherwise."""
        told: dict[str, str | float] = {"MOCK_FAILURE_RATE": 0, "MOCK_LATENCY_MS": 0, **settings}
        return self._processes.start_program(
            "tests.support.recording_worker", "worker", {**told, "CALL_LOG": str(self._log)}
        )

    def running(self, **settings: str | float) -> Process:
        """Start a worker and wait until it is healthy."""
        worker = self.start(**settings)
        worker.wait_until_healthy()
        return worker

    def calls(self, event: str | None = None) -> list[Call]:
        """Every note in the order of writing, or those of one event."""
        if not self._log.exists():
            return []
        noted = [line.split() for line in self._log.read_text().splitlines()]
        calls = [Call(float(time), key, what, int(pid)) for time, key, what, pid in noted]
        return [call for call in calls if event in {None, call.event}]

    def story(self, job_id: UUID, crew: Crew) -> list[str]:
        """What was noted of one job, as ``worker event``."""
        names = {worker.popen.pid: name for name, worker in crew._asdict().items()}
        return [
            f"{names[call.pid]} {call.event}" for call in self.calls() if call.key == str(job_id)
        ]
