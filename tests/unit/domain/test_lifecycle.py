"""The table of legal moves is complete, and what it forbids cannot be said."""

import pytest

from notify_queue.domain.attempt import Ended
from notify_queue.domain.lifecycle import (
    AUTOMATIC,
    CANCELLABLE,
    CLAIMABLE,
    ENDABLE,
    ENDINGS,
    LIVE,
    OPERATOR,
    REDRIVABLE,
    RETURNABLE,
    Status,
)
from notify_queue.domain.redrive import Selection

ENDED = {Status.SENT, Status.FAILED, Status.DEAD_LETTERED, Status.CANCELLED}
MOVES = {(source, target) for source, targets in AUTOMATIC.items() for target in targets}
OPERATOR_MOVES = {(source, target) for source, targets in OPERATOR.items() for target in targets}


def test_a_status_is_either_live_or_ended() -> None:
    assert set(Status) - ENDED == LIVE


def test_nothing_leaves_an_outcome_by_itself() -> None:
    assert not ENDED & {source for source, _ in MOVES}


def test_all_but_cancelled_is_reached_without_an_operator() -> None:
    assert {target for _, target in MOVES} == set(Status) - {Status.CANCELLED}


def test_no_status_moves_to_itself() -> None:
    assert all(source != target for source, target in MOVES)


def test_only_a_claimed_job_comes_to_an_end_by_itself() -> None:
    assert {source for source, target in MOVES if target in ENDED} == {Status.PROCESSING}


@pytest.mark.parametrize("status", Status)
def test_an_attempt_ends_a_job_only_as_the_table_allows(status: Status) -> None:
    if status in ENDINGS:
        assert Ended(status).status is status
    else:
        with pytest.raises(ValueError, match="cannot end a job"):
            Ended(status)


def test_operators_cancel_what_waits_and_redrive_what_ended_badly() -> None:
    assert {
        (Status.PENDING, Status.CANCELLED),
        (Status.FAILED, Status.PENDING),
        (Status.DEAD_LETTERED, Status.PENDING),
    } == OPERATOR_MOVES


def test_no_move_is_both_automatic_and_an_operators() -> None:
    assert not MOVES & OPERATOR_MOVES


def test_sent_and_cancelled_are_for_ever() -> None:
    assert not {Status.SENT, Status.CANCELLED} & {source for source, _ in MOVES | OPERATOR_MOVES}


def test_guards_are_the_sources_of_the_moves_they_guard() -> None:
    assert {Status.PENDING} == CLAIMABLE == CANCELLABLE
    assert {Status.PROCESSING} == RETURNABLE == ENDABLE
    assert {Status.DEAD_LETTERED, Status.FAILED} == REDRIVABLE


@pytest.mark.parametrize("status", Status)
def test_only_what_the_table_allows_can_be_selected_for_a_redrive(status: Status) -> None:
    if status in REDRIVABLE:
        assert Selection(status).status is status
    else:
        with pytest.raises(ValueError, match="cannot be redriven"):
            Selection(status)


def test_nobody_can_add_a_move_at_run_time() -> None:
    with pytest.raises(TypeError):
        AUTOMATIC[Status.SENT] = frozenset({Status.PENDING})  # type: ignore[index] # that it is not allowed is the point


def test_statuses_are_listed_in_the_order_of_error_messages() -> None:
    assert ", ".join(Status) == "PENDING, PROCESSING, SENT, FAILED, DEAD_LETTERED, CANCELLED"
