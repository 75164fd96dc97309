"""The rolling limit: each decision by the words of its rule."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.rate_limit import Decision, RateLimit, Slot, admit, free_slots
from tests.unit.domain.slots import NOW, RECIPIENTS, TICK, candidate, slot

NUMBERS = range(10)
NEWCOMER = 10


def within(slots: Iterable[Slot], now: datetime, limit: RateLimit) -> list[Slot]:
    return [each for each in slots if not each.ended_at or each.ended_at > now - limit.window]


@dataclass(frozen=True)
class Case:
    """What is decided at ``NOW``."""

    candidates: list[Candidate]
    slots: list[Slot]
    limit: RateLimit
    seats: int

    def decide(self) -> Decision:
        return admit(self.candidates, self.slots, NOW, self.limit, self.seats)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any candidates once each, slots of any notifications, stamps up to beyond now."""
    width = draw(st.integers(1, 8))
    ended = st.none() | st.integers(1 - width, 3)
    return Case(
        draw(st.lists(st.builds(candidate, st.sampled_from(NUMBERS)), unique=True)),
        draw(st.lists(st.builds(slot, st.sampled_from(NUMBERS), ended), max_size=12)),
        RateLimit(draw(st.integers(1, 4)), width * TICK),
        draw(st.integers(0, len(NUMBERS))),
    )


@given(cases())
@settings(max_examples=200, deadline=None)
def test_who_finds_fewer_others_than_the_limit_is_admitted_in_turn_up_to_the_last_seat(
    case: Case,
) -> None:
    admitted: list[Candidate] = []
    refused: list[Candidate] = []
    holders = {(each.recipient, each.job_id) for each in case.slots}
    for each in case.candidates:
        if len(admitted) == case.seats:
            break
        own = (each.recipient, each.job_id)
        others = [holder for holder in holders - {own} if holder[0] == each.recipient]
        if len(others) < case.limit.most:
            admitted.append(each)
            holders.add(own)
        else:
            refused.append(each)
    decision = case.decide()
    assert (decision.admitted, decision.refused) == (admitted, refused)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_a_slot_opens_when_one_who_waits_finds_fewer_others_than_the_limit(case: Case) -> None:
    decision = case.decide()
    recipients = {each.recipient for each in case.slots}
    recipients |= {each.recipient for each in case.candidates}
    assert decision.opens_at.keys() == recipients
    admitted = {each.job_id for each in decision.admitted}
    for recipient, opens_at in decision.opens_at.items():
        # Every attempt that runs, or begins now, as if it ended now, whatever came before it.
        running = {each.job_id for each in case.slots if each.ended_at is None}
        ends = [
            (each.job_id, NOW if each.job_id in running else each.ended_at or NOW)
            for each in case.slots
            if each.recipient == recipient and each.job_id not in admitted
        ]
        ends += [(each.job_id, NOW) for each in decision.admitted if each.recipient == recipient]
        # Those who were refused, and a newcomer.
        waiting = {each.job_id for each in decision.refused if each.recipient == recipient}
        instant = NOW
        while all(
            len({job_id for job_id, end in ends if end > instant - case.limit.window} - {waits})
            >= case.limit.most
            for waits in waiting | {None}
        ):
            instant += TICK
        assert opens_at == instant


def gets_in(slots: Sequence[Slot], now: datetime, limit: RateLimit) -> bool:
    """Whether somebody who holds no slot is admitted."""
    return bool(admit([candidate(NEWCOMER)], within(slots, now, limit), now, limit, 1).admitted)


@st.composite
def taken(draw: st.DrawFn, *, running: bool) -> tuple[list[Slot], RateLimit]:
    """All slots of one recipient are held, perhaps more than there are since it was lowered."""
    width = draw(st.integers(1, 8))
    stamps = st.integers(1 - width, 3)
    ended = st.none() | stamps if running else stamps
    held = st.dictionaries(st.sampled_from(NUMBERS[::2]), ended, min_size=1)
    slots = [slot(number, tick) for number, tick in draw(held).items()]
    return slots, RateLimit(draw(st.integers(1, len(slots))), width * TICK)


@given(taken(running=False))
@settings(deadline=None)
def test_who_waits_is_refused_a_microsecond_before_a_slot_opens_and_admitted_when_it_does(
    taken: tuple[list[Slot], RateLimit],
) -> None:
    slots, limit = taken
    opens_at = admit([], slots, NOW, limit, 1).opens_at[RECIPIENTS[0]]
    assert not gets_in(slots, opens_at - TICK, limit)
    assert gets_in(slots, opens_at, limit)


@given(taken(running=True), st.lists(st.none() | st.integers(0, 9), min_size=len(NUMBERS)))
@settings(deadline=None)
def test_nobody_gets_in_before_a_slot_opens_however_soon_the_running_attempts_end(
    taken: tuple[list[Slot], RateLimit], ends: list[int | None]
) -> None:
    slots, limit = taken
    instant, opens_at = NOW, admit([], slots, NOW, limit, 1).opens_at[RECIPIENTS[0]]
    while instant < opens_at:
        then = [
            slot(each.job_id.int, ends[each.job_id.int]) if each.ended_at is None else each
            for each in slots
        ]
        # An end that is still to come at this instant makes no difference: it holds either way.
        assert not gets_in(then, instant, limit)
        instant += TICK


@given(cases(), st.sets(st.sampled_from([*RECIPIENTS, "eve@example.com"])))
@settings(deadline=None)
def test_as_many_newcomers_are_admitted_as_slots_are_said_to_be_free(
    case: Case, asked: set[str]
) -> None:
    newcomers = [candidate(NEWCOMER + number) for number in range(12)]
    admitted = admit(newcomers, case.slots, NOW, case.limit, len(newcomers)).admitted
    places = Counter(each.recipient for each in admitted)
    if "eve@example.com" in asked:
        # She holds nothing.
        places["eve@example.com"] = case.limit.most
    expected = {recipient: count for recipient, count in places.items() if recipient in asked}
    assert free_slots(asked, case.slots, case.limit) == expected
