"""A guard of no move is no row, and a guard cannot be asked for what its table does not hold."""

import pytest

from notify_queue.domain.lifecycle import LIVE, Status
from notify_queue.persistence.guards import entry_is, outcome_is


def test_a_move_that_the_table_does_not_have_matches_no_row() -> None:
    assert str(entry_is(())) == "false"
    # What SQLAlchemy makes of IN with nothing in it.
    assert "1 != 1" in str(outcome_is(()).compile(compile_kwargs={"literal_binds": True}))


@pytest.mark.parametrize("status", Status)
def test_each_table_knows_its_own_statuses(status: Status) -> None:
    if status in LIVE:
        assert "claim_token" in str(entry_is({status}))
        with pytest.raises(ValueError, match="no outcome"):
            outcome_is({status})
    else:
        assert "outcome" in str(outcome_is({status}))
        with pytest.raises(KeyError):
            entry_is({status})
