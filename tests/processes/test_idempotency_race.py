"""Callers that race for one idempotency key get answers, never errors."""

from collections import Counter
from functools import partial

import requests

from tests.support.jobs import Jobs
from tests.support.load import a_body, at_once, post
from tests.support.processes import Processes


def _answers(replies: list[requests.Response]) -> Counter[tuple[int, str | None]]:
    return Counter(
        (reply.status_code, reply.headers.get("Idempotent-Replayed")) for reply in replies
    )


def test_identical_requests_at_the_same_moment_make_one_job(
    processes: Processes, jobs: Jobs
) -> None:
    api = processes.running("api")
    body = a_body(idempotencyKey="one")

    replies = at_once([partial(post, api, body)] * 25)

    assert _answers(replies) == {(201, "false"): 1, (200, "true"): 24}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert jobs.one("SELECT count(*) FROM notification_jobs") == 1
    assert jobs.one("SELECT count(*) FROM job_queue") == 1


def test_of_two_requests_racing_for_one_key_one_wins_and_the_other_conflicts(
    processes: Processes, jobs: Jobs
) -> None:
    api = processes.running("api")
    first = partial(post, api, a_body(idempotencyKey="one", recipient="first@example.com"))
    second = partial(post, api, a_body(idempotencyKey="one", recipient="second@example.com"))

    # Alternating, so that neither gets a head start.
    replies = at_once([first, second] * 25)

    won = {(201, "false"): 1, (200, "true"): 24}
    lost = {(409, None): 25}
    by_body = [_answers(replies[0::2]), _answers(replies[1::2])]
    assert by_body in ([won, lost], [lost, won])
    winner = "first@example.com" if by_body[0] == won else "second@example.com"
    assert jobs.one("SELECT string_agg(recipient, ',') FROM notification_jobs") == winner
    assert jobs.one("SELECT count(*) FROM job_queue") == 1
