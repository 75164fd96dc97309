"""Paging: every job exactly once, newest first, whatever it filters by and whatever comes in."""

from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notify_queue.domain.errors import InvalidCursorError
from notify_queue.domain.job import Job
from notify_queue.domain.lifecycle import LIVE, Status
from notify_queue.domain.page import Filter
from notify_queue.notifications.read import ListNotifications
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory
from tests.support.jobs import Jobs

ALL = Filter()


@pytest.fixture
def list_page(unit_of_work: UnitOfWorkFactory) -> ListNotifications:
    return ListNotifications(unit_of_work)


def pages(list_page: ListNotifications, wanted: Filter, limit: int) -> Iterator[list[Job]]:
    cursor: str | None = None
    while True:
        page = list_page(wanted, limit, cursor)
        yield page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def in_every_status(jobs: Jobs, each: int) -> dict[Status, list[UUID]]:
    """So many jobs in each status, created in turn a microsecond apart, for two recipients."""
    added = jobs.add(each * len(Status))
    by_status = {status: added[n :: len(Status)] for n, status in enumerate(Status)}
    jobs.run(
        "UPDATE notification_jobs SET created_at = created_at"
        " + make_interval(secs => array_position(:ids, id) * 0.000001),"
        " recipient = CASE array_position(:ids, id) / 6 % 2 WHEN 0 THEN 'a' ELSE 'b' END",
        ids=added,
    )
    jobs.run(
        "UPDATE job_queue SET created_at = j.created_at, recipient = j.recipient"
        " FROM notification_jobs j WHERE id = job_id"
    )
    for status, ids in by_status.items():
        if status is Status.PROCESSING:
            jobs.run(
                "UPDATE job_queue SET claim_token = gen_random_uuid(), locked_by = 'w',"
                " locked_at = now(), attempt_count = 1 WHERE job_id = ANY(:ids)",
                ids=ids,
            )
        elif status not in LIVE:
            jobs.run("DELETE FROM job_queue WHERE job_id = ANY(:ids)", ids=ids)
            jobs.run(
                "UPDATE notification_jobs SET outcome = :outcome, ended_at = now()"
                " WHERE id = ANY(:ids)",
                outcome=status.value,
                ids=ids,
            )
    return by_status


@pytest.mark.parametrize("recipient", [None, "a", "nobody"])
@pytest.mark.parametrize("status", [None, *Status])
def test_a_filter_shows_what_it_says_newest_first_and_nothing_else(
    list_page: ListNotifications, jobs: Jobs, status: Status | None, recipient: str | None
) -> None:
    by_status = in_every_status(jobs, 6)
    shown = [job for page in pages(list_page, Filter(status, recipient), 4) for job in page]
    wanted = [each for one, ids in by_status.items() if status in {None, one} for each in ids]
    expected = [
        row for row in map(jobs.row, wanted) if recipient is None or row["recipient"] == recipient
    ]
    expected.sort(key=lambda row: (row["created_at"], row["id"]), reverse=True)
    assert [(job.id, job.status) for job in shown] == [
        (row["id"], row["status"]) for row in expected
    ]


def test_a_thousand_jobs_of_one_instant_are_paged_once_each_with_inserts_going_on(
    list_page: ListNotifications, jobs: Jobs
) -> None:
    added = jobs.add(1000)
    assert jobs.one("SELECT count(DISTINCT created_at) FROM notification_jobs") == 1
    shown: list[UUID] = []
    for page in pages(list_page, ALL, 37):
        shown += [job.id for job in page]
        jobs.add(3)
    assert len(shown) == len(set(shown)) == 1000
    assert set(shown) == set(added)


def test_jobs_a_microsecond_apart_are_paged_once_each_with_inserts_going_on(
    list_page: ListNotifications, jobs: Jobs
) -> None:
    added = jobs.add(300)
    for table, key in (("notification_jobs", "id"), ("job_queue", "job_id")):
        jobs.run(
            f"UPDATE {table} SET created_at = created_at"
            f" + make_interval(secs => array_position(:ids, {key}) * 0.000001)",
            ids=added,
        )
    shown: list[Job] = []
    for page in pages(list_page, ALL, 7):
        shown += page
        jobs.add()
    assert [job.id for job in shown] == added[::-1]
    assert all(newer.created_at > older.created_at for newer, older in pairwise(shown))


def test_jobs_that_end_between_two_pages_are_shown_once(
    list_page: ListNotifications, jobs: Jobs
) -> None:
    added = jobs.add(60)
    shown: list[UUID] = []
    for page in pages(list_page, ALL, 7):
        shown += [job.id for job in page]
        ending = added[:20] if len(shown) < 20 else added[20:]
        jobs.run("DELETE FROM job_queue WHERE job_id = ANY(:ids)", ids=ending)
        jobs.run(
            "UPDATE notification_jobs SET outcome = 'SENT', ended_at = now()"
            " WHERE id = ANY(:ids) AND outcome IS NULL",
            ids=ending,
        )
    assert len(shown) == len(set(shown)) == 60


def test_the_last_page_says_so_even_when_it_is_full(
    list_page: ListNotifications, jobs: Jobs
) -> None:
    jobs.add(4)
    first = list_page(ALL, 2, None)
    assert first.next_cursor is not None
    assert list_page(ALL, 2, first.next_cursor).next_cursor is None
    assert list_page(ALL, 4, None).next_cursor is None


def test_an_empty_listing_is_a_last_page(list_page: ListNotifications) -> None:
    page = list_page(ALL, 20, None)
    assert (page.items, page.next_cursor) == ([], None)


def test_a_cursor_of_another_database_is_refused(list_page: ListNotifications, jobs: Jobs) -> None:
    jobs.add(2)
    cursor = list_page(ALL, 1, None).next_cursor
    key = jobs.one("SELECT key FROM signing_keys")
    jobs.run("UPDATE signing_keys SET key = uuid_send(gen_random_uuid()) || key")
    try:
        with pytest.raises(InvalidCursorError):
            list_page(ALL, 1, cursor)
    finally:
        jobs.run("UPDATE signing_keys SET key = :key", key=key)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=100))
def test_no_text_reaches_the_database_as_a_cursor(list_page: ListNotifications, text: str) -> None:
    with pytest.raises(InvalidCursorError):
        list_page(ALL, 1, text)


def test_a_place_that_has_lost_its_job_does_not_end_the_listing(
    list_page: ListNotifications, jobs: Jobs
) -> None:
    """Only a write past the triggers leaves one behind, as a replication role's does."""
    added = jobs.add(5)
    jobs.run("DELETE FROM job_queue")
    jobs.run("UPDATE notification_jobs SET outcome = 'SENT', ended_at = now()")
    jobs.run(
        "UPDATE sent_jobs SET created_at = created_at + interval '1 s' WHERE job_id = :i",
        i=added[0],
    )
    shown = [job.id for page in pages(list_page, ALL, 2) for job in page]
    assert len(shown) == len(set(shown)) == 4


def test_the_order_of_sent_jobs_follows_whoever_writes_the_ledger(jobs: Jobs) -> None:
    """Kept by the database itself: an old worker in the middle of a deploy does not know of it."""
    places = "SELECT array_agg(job_id || recipient || created_at ORDER BY job_id) FROM sent_jobs"
    sent = (
        "SELECT array_agg(id || recipient || created_at ORDER BY id) FROM notification_jobs"
        " WHERE outcome = 'SENT'"
    )
    insert = (
        "INSERT INTO notification_jobs (id, idempotency_key, recipient, channel, payload, priority,"
        " scheduled_at, outcome, ended_at, max_attempts)"
        " VALUES (gen_random_uuid(), 'k', 'r', 'EMAIL', '{}', 2, now(), 'SENT', now(), 6)"
    )
    jobs.add(3)
    one = "(SELECT min(id::text)::uuid FROM notification_jobs)"
    for count, statement in [
        (3, "UPDATE notification_jobs SET outcome = 'SENT', ended_at = now()"),
        (3, "UPDATE notification_jobs SET updated_at = now()"),
        (2, f"UPDATE notification_jobs SET outcome = 'FAILED' WHERE id = {one}"),
        (2, "UPDATE notification_jobs SET recipient = 'erased'"),
        (2, "UPDATE notification_jobs SET created_at = created_at - interval '1 hour'"),
        (3, "UPDATE notification_jobs SET outcome = 'SENT'"),
        (4, insert),
        (1, "DELETE FROM notification_jobs WHERE idempotency_key <> 'k'"),
        (0, "TRUNCATE notification_jobs CASCADE"),
    ]:
        jobs.run(statement)
        assert jobs.one("SELECT count(*) FROM sent_jobs") == count, statement
        assert jobs.one(places) == jobs.one(sent), statement
