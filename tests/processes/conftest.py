"""What the tests of real processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.faults import WORKER, listening
from tests.support.held import gates
from tests.support.processes import Processes
from tests.support.recording import EAGER, RESCUER, Crew, RecordingProvider
from tests.support.waiting import until


@pytest.fixture
def provider(database_url: str, engine: Engine, tmp_path: Path) -> Iterator[RecordingProvider]:
    """Workers on the empty shared database whose provider notes every call.

    The database has gates, so that their transactions can be held.
    """
    with gates(engine), Processes(database_url, tmp_path) as processes:
        yield RecordingProvider(processes, tmp_path / "calls.log")


@pytest.fixture
def crew(provider: RecordingProvider, engine: Engine) -> Crew:
    """Two workers. The eager one starts when the rescuer sleeps already."""
    rescuer = provider.running(**RESCUER, WORKER_ID="rescuer")
    until(lambda: listening(engine, WORKER), "the rescuer to sleep")
    return Crew(rescuer, provider.running(**EAGER, WORKER_ID="eager"))
