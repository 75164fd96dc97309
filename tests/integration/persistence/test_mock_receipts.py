"""The mock receiver counts what it gets."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs


def count(unit_of_work: UnitOfWorkFactory, event_id: UUID, job_id: UUID, status: str) -> int:
    with unit_of_work() as unit:
        received = unit.mock_receipts.count(event_id, job_id, status)
        unit.commit()
    return received


def test_what_an_event_said_first_stays(unit_of_work: UnitOfWorkFactory, jobs: Jobs) -> None:
    event_id, job_id = uuid4(), uuid4()
    assert count(unit_of_work, event_id, job_id, "SENT") == 1
    assert count(unit_of_work, event_id, uuid4(), "FAILED") == 2
    kept = "SELECT status || job_id FROM mock_webhook_receipts"
    assert jobs.one(kept) == f"SENT{job_id}"
    assert jobs.one("SELECT last_received_at > first_received_at FROM mock_webhook_receipts")


def test_receipts_at_once_are_all_counted(unit_of_work: UnitOfWorkFactory) -> None:
    event_id, job_id = uuid4(), uuid4()
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: count(unit_of_work, event_id, job_id, "SENT"), range(20)))
    assert sorted(counts) == list(range(1, 21))
