"""The rolling limit over whole histories: what the provider sees of it.

Claims, calls and their records follow each other at random, and every decision is made on what the
database would show at that moment.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from notify_queue.domain.rate_limit import RateLimit, Slot, admit
from tests.unit.domain.slots import TICK, at, candidate, slot


class Fate(Enum):
    """What becomes of a claim."""

    RECORDED = "the provider is called, and what came of it is recorded"
    LOST = "the worker dies after the call, and the end of the lease counts as the attempt's"
    RELEASED = "the notification goes back without a call"


# Longer than any attempt, as the settings see to it.
LEASE = 16


@dataclass(frozen=True)
class Attempt:
    """One claim's story: how many ticks pass until each event after the one before."""

    fate: Fate
    begins: int
    lasts: int
    recorded: int
    committed: int


@dataclass(frozen=True)
class Pass:
    """A look for candidates, so many ticks after the last, by a transaction of a certain age.

    It may find old reservations pruned. Offered is whoever is not running: for the first time, to
    be tried again, or redriven, which makes no difference to the limit.
    """

    wait: int
    age: int
    pruned: bool
    offered: Sequence[int]
    seats: int


@dataclass(frozen=True)
class Call:
    """A call of the provider, which may act at any instant of it, both ends included."""

    number: int
    begin: int
    end: int


@dataclass
class Books:
    """What the database knows.

    ``running`` has for each claim when its end is committed, and the stamp that is written then.
    """

    width: int
    running: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    stamps: dict[int, int] = field(default_factory=dict)

    def catch_up(self, tick: int) -> None:
        for number, (committed, stamp) in list(self.running.items()):
            if committed <= tick:
                del self.running[number]
                if stamp is not None:
                    self.stamps[number] = stamp

    def prune(self, now: int) -> None:
        self.stamps = {
            number: stamp for number, stamp in self.stamps.items() if stamp > now - self.width
        }

    def slots(self, now: int) -> list[Slot]:
        ended = [slot(*each) for each in self.stamps.items() if each[1] > now - self.width]
        return [slot(number, None) for number in self.running] + ended

    def claim(self, number: int, tick: int, attempt: Attempt) -> list[Call]:
        """Let the attempt run from now on, and tell the calls it will make."""
        begin = tick + attempt.begins
        if attempt.fate is Fate.RELEASED:
            self.running[number] = (begin + attempt.committed, None)
            return []
        end = begin + attempt.lasts
        over = tick + LEASE if attempt.fate is Fate.LOST else end
        stamp = over + attempt.recorded
        self.running[number] = (stamp + attempt.committed, stamp)
        return [Call(number, begin, end)]


def calls_of(
    passes: Iterable[Pass], attempts: Sequence[Attempt], most: int, width: int
) -> list[Call]:
    """Play a history: every decision is made on what the database shows at that moment."""
    books, limit = Books(width), RateLimit(most, width * TICK)
    stories = cycle(attempts)
    tick = 0
    calls: list[Call] = []
    for each in passes:
        tick += each.wait
        books.catch_up(tick)
        if each.pruned:
            books.prune(tick)
        now = tick - each.age
        offered = [candidate(number) for number in each.offered if number not in books.running]
        decision = admit(offered, books.slots(now), at(now), limit, each.seats)
        for admitted in decision.admitted:
            calls += books.claim(admitted.job_id.int, tick, next(stories))
    return calls


def fullest(calls: Sequence[Call], width: int) -> int:
    """How many notifications of a recipient a window touches at most, counting whole calls.

    Wherever within its calls the provider acted, no window holds more. A window that begins with
    the end of a call is as full as any: moved on until then, it loses nobody.
    """
    touched = [
        Counter(
            number % 2
            for number in {
                call.number
                for call in calls
                if call.begin < first.end + width and call.end >= first.end
            }
        )
        for first in calls
    ]
    return max((max(each.values()) for each in touched), default=0)


def ticks(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


attempts = st.builds(
    Attempt, st.sampled_from(Fate), ticks(4), ticks(6), recorded=ticks(3), committed=ticks(3)
)
passes = st.builds(
    Pass, ticks(8), ticks(3), st.booleans(), st.permutations(range(8)), st.integers(0, 8)
)


@given(
    st.lists(passes, min_size=4, max_size=16),
    st.lists(attempts, min_size=1, max_size=8),
    st.integers(1, 3),
    st.integers(1, 10),
)
@settings(max_examples=300, deadline=None)
def test_no_window_ever_touches_the_calls_of_more_notifications_than_the_limit(
    passes: list[Pass], attempts: list[Attempt], most: int, width: int
) -> None:
    assert fullest(calls_of(passes, attempts, most, width), width) <= most


def test_the_next_is_called_as_soon_as_the_last_attempt_ended_a_window_ago() -> None:
    offers = [[0], *14 * [[2]], *14 * [[4]]]
    looks = [Pass(1, 0, pruned=False, offered=offered, seats=1) for offered in offers]
    # Stamped 4 ticks after it began.
    attempt = Attempt(Fate.RECORDED, begins=0, lasts=3, recorded=1, committed=1)
    calls = calls_of(looks, [attempt], most=1, width=10)
    assert [(call.number, call.begin) for call in calls] == [(0, 1), (2, 15), (4, 29)]
