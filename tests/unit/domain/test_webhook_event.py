"""What a webhook says, and what follows from each answer to it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.retry import Backoff
from notify_queue.domain.webhook_event import (
    EVENT_STATUSES,
    LOST,
    Answer,
    Answered,
    DueEvent,
    GivenUp,
    NoAnswer,
    Received,
    TryAgain,
    Verdict,
    WebhookEvent,
    body_of,
    is_spent,
    is_trouble,
    judge_answer,
)

EVENT = WebhookEvent(
    event_id=UUID("01a22ed0-04cf-7fea-80f0-128f4495ea99"),
    job_id=UUID("F7765069-6477-4C9B-B348-0F242EDE42CB"),
    status=Status.DEAD_LETTERED,
    attempt_count=6,
    redrive_count=1,
    occurred_at=datetime(2026, 3, 1, 12, 0, 0, 123_999, tzinfo=UTC),
)
BACKOFF = Backoff(base_ms=1_000, max_ms=60_000)
STATUSES = range(100, 600)


def judged(answer: Answer, spent: int = 1, max_attempts: int = 10) -> Verdict:
    """The verdict on an attempt, with the shortest wait that can be drawn."""
    return judge_answer(answer, spent, max_attempts, BACKOFF, random=0)


def due(attempts: int, forgiven: int = 0) -> DueEvent:
    """An event whose turn it is after so many attempts."""
    return DueEvent(EVENT, attempts, forgiven, lost=False, last_error=None)


class TestBody:
    """The exact bytes, since they are what is signed."""

    def test_it_has_six_fields_in_their_order_and_nothing_else(self) -> None:
        assert body_of(EVENT) == (
            b'{"eventId":"01a22ed0-04cf-7fea-80f0-128f4495ea99",'
            b'"jobId":"f7765069-6477-4c9b-b348-0f242ede42cb",'
            b'"status":"DEAD_LETTERED","attemptCount":6,'
            b'"timestamp":"2026-03-01T12:00:00.123Z","redriveCount":1}'
        )

    @pytest.mark.parametrize(
        ("occurred_at", "written"),
        [
            (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00.000Z"),
            (
                datetime(2026, 1, 1, 0, 30, 0, 9_999, tzinfo=timezone(timedelta(hours=1))),
                "2025-12-31T23:30:00.009Z",
            ),
        ],
    )
    def test_its_time_is_utc_with_three_digits_cut_and_not_rounded(
        self, occurred_at: datetime, written: str
    ) -> None:
        body = json.loads(body_of(replace(EVENT, occurred_at=occurred_at)))
        assert body["timestamp"] == written

    def test_three_endings_are_told_of_in_the_order_of_the_messages(self) -> None:
        assert EVENT_STATUSES == (Status.SENT, Status.FAILED, Status.DEAD_LETTERED)


class TestJudgeAnswer:
    """One table for all status codes (pitfall W3)."""

    @pytest.mark.parametrize("spent", [1, 9, 10, 11])
    def test_the_200s_are_received_whichever_attempt_it_was_and_no_other_status_is(
        self, spent: int
    ) -> None:
        received = {status for status in STATUSES if judged(Answered(status), spent) == Received()}
        assert received == set(range(200, 300))

    def test_every_other_status_is_tried_again_after_the_backoff(self) -> None:
        for status in set(STATUSES) - set(range(200, 300)):
            again = judged(Answered(status), spent=3)
            assert again == TryAgain(2_000, f"HTTP {status}")

    def test_and_given_up_with_the_last_attempt(self) -> None:
        for status in set(STATUSES) - set(range(200, 300)):
            for spent in (10, 11):
                assert judged(Answered(status), spent) == GivenUp(f"HTTP {status}")

    def test_no_answer_is_told_in_its_own_words(self) -> None:
        assert judged(NoAnswer("ECONNREFUSED"), spent=9) == TryAgain(60_000 // 2, "ECONNREFUSED")
        assert judged(NoAnswer("ECONNREFUSED"), spent=10) == GivenUp("ECONNREFUSED")

    @pytest.mark.parametrize("status", [301, 400, 410, 429, 503])
    @pytest.mark.parametrize(
        ("asked_s", "spent", "delay_ms"),
        [(0, 1, 500), (1, 1, 1_000), (120, 1, 120_000), (3_600, 9, 3_600_000), (1, 7, 30_000)],
    )
    def test_the_later_of_the_wait_asked_for_and_the_backoff_counts(
        self, status: int, asked_s: int, spent: int, delay_ms: int
    ) -> None:
        again = judged(Answered(status, asked_s), spent)
        assert again == TryAgain(delay_ms, f"HTTP {status}")

    def test_a_wait_asked_for_changes_nothing_about_the_end(self) -> None:
        assert judged(Answered(503, 120), spent=10) == GivenUp("HTTP 503")
        assert judged(Answered(200, 120)) == Received()

    def test_the_draw_reaches_the_delay(self) -> None:
        again = judge_answer(NoAnswer("x"), 1, 10, BACKOFF, random=0.5)
        assert again == TryAgain(750, "x")

    def test_a_budget_of_one_is_one_attempt(self) -> None:
        assert judged(Answered(500), spent=1, max_attempts=1) == GivenUp("HTTP 500")


def test_trouble_is_no_answer_too_many_requests_and_the_500s() -> None:
    trouble = {status for status in STATUSES if is_trouble(Answered(status))}
    assert trouble == {429, *range(500, 600)}
    assert is_trouble(Answered(429, wait_s=5))
    assert is_trouble(NoAnswer("ECONNREFUSED"))


@pytest.mark.parametrize(
    ("attempts", "forgiven", "spent"),
    [
        (0, 0, False),
        (9, 0, False),
        (10, 0, True),
        (11, 0, True),
        (10, 10, False),
        (19, 10, False),
        (20, 10, True),
        (25, 5, True),
    ],
)
def test_a_budget_is_spent_by_attempts_that_were_not_forgiven(
    attempts: int, forgiven: int, *, spent: bool
) -> None:
    assert is_spent(due(attempts, forgiven), max_attempts=10) == spent


def test_the_error_of_a_lost_attempt_is_one_line_that_blames_nobody() -> None:
    assert LOST.isprintable()
    assert len(LOST) < 100
