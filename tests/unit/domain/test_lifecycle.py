"""The tables of legal moves are complete and agree with each other."""

from collections.abc import Mapping

import pytest

from notify_queue.domain.lifecycle import AUTOMATIC, LIVE, OPERATOR, OUTCOMES, Status

Table = Mapping[Status, frozenset[Status]]


def moves(table: Table) -> set[tuple[Status, Status]]:
    return {(source, target) for source, targets in table.items() for target in targets}


def test_every_status_can_be_reached() -> None:
    reached = {target for _, target in moves(AUTOMATIC) | moves(OPERATOR)}
    assert reached == set(Status)


def test_only_a_sent_or_a_cancelled_job_stays_as_it_is_for_ever() -> None:
    left = {source for source, _ in moves(AUTOMATIC) | moves(OPERATOR)}
    assert set(Status) - left == {Status.SENT, Status.CANCELLED}


def test_a_status_is_either_live_or_an_outcome() -> None:
    ended = {Status.SENT, Status.FAILED, Status.DEAD_LETTERED, Status.CANCELLED}
    assert set(OUTCOMES) == ended
    assert set(Status) - ended == LIVE


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_nothing_leaves_an_outcome_by_itself(outcome: Status) -> None:
    assert outcome not in AUTOMATIC


def test_no_move_is_both_automatic_and_an_operators() -> None:
    assert not moves(AUTOMATIC) & moves(OPERATOR)


def test_no_status_moves_to_itself() -> None:
    assert all(source != target for source, target in moves(AUTOMATIC) | moves(OPERATOR))


def test_only_a_claimed_job_comes_to_an_end_by_itself() -> None:
    ends = {source for source, target in moves(AUTOMATIC) if target in OUTCOMES}
    assert ends == {Status.PROCESSING}


def test_what_an_operator_brings_back_starts_as_pending() -> None:
    back = {(source, target) for source, target in moves(OPERATOR) if source in OUTCOMES}
    assert back == {
        (Status.FAILED, Status.PENDING),
        (Status.DEAD_LETTERED, Status.PENDING),
    }


@pytest.mark.parametrize("table", [AUTOMATIC, OPERATOR])
def test_nobody_can_add_a_move_at_run_time(table: dict[Status, frozenset[Status]]) -> None:
    with pytest.raises(TypeError):
        table[Status.SENT] = frozenset({Status.PENDING})


def test_statuses_are_listed_in_the_order_of_error_messages() -> None:
    assert ", ".join(Status) == "PENDING, PROCESSING, SENT, FAILED, DEAD_LETTERED, CANCELLED"
