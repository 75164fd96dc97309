"""No time zone of a process or of the database moves an instant."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from notify_queue.persistence.engine import direct_engine
from tests.support.faults import engine_on
from tests.support.jobs import Jobs
from tests.support.load import a_body, post
from tests.support.postgres import Databases, sqlalchemy_url
from tests.support.processes import Process, Processes
from tests.support.waiting import until

_ZONE = "Europe/London"


@pytest.fixture
def london(databases: Databases) -> Iterator[str]:
    """A database whose sessions are in London, where the clocks change."""
    url = databases.clone()
    with engine_on(url) as engine, engine.begin() as connection:
        name = urlsplit(url).path.removeprefix("/")
        connection.execute(text(f"ALTER DATABASE \"{name}\" SET timezone = '{_ZONE}'"))
    yield url
    databases.drop(url)


def _schedule(api: Process, send_at: str) -> str:
    answer = post(api, a_body(sendAt=send_at, idempotencyKey=send_at))
    assert answer.status_code == 201
    shown: str = answer.json()["scheduledAt"]
    return shown


def _zone_of_a_new_session(url: str) -> str:
    with direct_engine(sqlalchemy_url(url), "zones").connect() as connection:
        zone: str = connection.scalar(text("SHOW timezone"))
    return zone


def test_the_hour_that_happens_twice_is_two_hours(london: str, tmp_path: Path) -> None:
    with engine_on(london) as engine, Processes(london, tmp_path) as processes:
        assert _zone_of_a_new_session(london) == _ZONE
        api = processes.start("api", TZ=_ZONE)
        worker = processes.running("worker", TZ=_ZONE, MOCK_FAILURE_RATE=0)
        api.wait_until_healthy()

        # In that night 01:30 on the wall comes first at +01:00, then again at +00:00.
        assert _schedule(api, "2020-10-25T01:30:00+01:00") == "2020-10-25T00:30:00.000Z"
        assert _schedule(api, "2020-10-25T01:30:00+00:00") == "2020-10-25T01:30:00.000Z"
        # Wall time alone is refused, also where it never happened.
        assert post(api, a_body(sendAt="2020-03-29T01:30:00")).status_code == 400

        jobs = Jobs(engine)
        apart = jobs.one("SELECT max(scheduled_at) - min(scheduled_at) FROM notification_jobs")
        assert apart == timedelta(hours=1)
        until(lambda: jobs.statuses() == {"SENT": 2}, "both to be sent")
        assert worker.stop() == 0
        assert len(worker.lines("job.sent")) == 2
        assert jobs.one("SELECT count(*) FROM mock_provider_deliveries") == 2
        for line in worker.lines():
            assert line["time"].endswith("Z")


def test_a_delay_is_the_same_in_every_zone(london: str, tmp_path: Path) -> None:
    with engine_on(london) as engine, Processes(london, tmp_path) as processes:
        api = processes.running("api", TZ="Pacific/Kiritimati")
        assert post(api, a_body(delaySeconds=60)).status_code == 201
        jobs = Jobs(engine)
        assert jobs.one("SELECT scheduled_at - created_at FROM notification_jobs") == timedelta(
            seconds=60
        )
