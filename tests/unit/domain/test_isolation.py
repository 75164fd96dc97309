"""A suspect is tried alone, and holds nobody up for longer than that."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.domain.isolation import Chosen, Due, choose

JOBS = [Due(uuid4(), suspect=False) for _ in range(3)]
FIRST, SECOND = Due(uuid4(), suspect=True), Due(uuid4(), suspect=True)
dues = st.lists(st.builds(Due, st.uuids(), st.booleans()))


@pytest.mark.parametrize("idle", [True, False])
def test_without_suspects_everything_is_claimed(*, idle: bool) -> None:
    assert choose(JOBS, idle=idle) == Chosen(JOBS, alone=False, suspect_waits=False)


def test_a_busy_worker_takes_the_others_and_then_nothing_more() -> None:
    chosen = choose([FIRST, *JOBS, SECOND], idle=False)
    assert chosen == Chosen(JOBS, alone=False, suspect_waits=True)


def test_an_idle_worker_takes_one_suspect_and_nothing_else() -> None:
    assert choose([*JOBS, FIRST], idle=True) == Chosen([FIRST], alone=True, suspect_waits=False)
    both = choose([FIRST, *JOBS, SECOND], idle=True)
    assert both == Chosen([FIRST], alone=True, suspect_waits=True)


@given(due=dues, idle=st.booleans())
def test_a_suspect_never_has_company(due: list[Due], *, idle: bool) -> None:
    chosen = choose(due, idle=idle)
    if any(each.suspect for each in chosen.due):
        assert idle
        assert chosen.alone
        assert len(chosen.due) == 1


@given(due=dues)
def test_an_idle_worker_always_has_something_to_do_when_there_is_something(due: list[Due]) -> None:
    assert bool(choose(due, idle=True).due) == bool(due)
