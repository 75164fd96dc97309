"""Step one under a limit: of the due jobs, claim those whose recipients may be called now.

Candidates are the due jobs, and the best of those that are parked at gates which may be open. Who
is refused is parked, so that it is not looked at again before its time and hides nobody else.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from notify_queue.domain.aging import Aging, in_turn
from notify_queue.domain.attempt import Candidate, Claim
from notify_queue.domain.rate_limit import Decision, RateLimit, Standing, admit, free_slots
from notify_queue.persistence.unit_of_work import UnitOfWork

# Every recipient of a pass is a lock in a table of the server that all sessions share, and that has
# room for some thousands by default.
MOST_SEATS: Final = 500
# When jobs were refused there are probably more of the same: so many are looked at to get past
# them and fill the seats.
LOOK_AHEAD: Final = 500
# Workers that are never idle make themselves idle for a suspect about once a minute.
SUSPECT_WAIT: Final = timedelta(minutes=2)

ClaimThese = Callable[[Sequence[Candidate]], list[Claim]]


@dataclass(slots=True)
class Admitted:
    """What a pass came to.

    ``parked`` are the jobs that it parked, each with the instant at which its recipient's gate may
    open. ``busy`` are recipients that somebody else decides about at this moment. ``stuck`` says
    that parked jobs could go, but somebody holds their rows. ``more`` says that there may be more
    to claim at once.
    """

    claims: list[Claim] = field(default_factory=list)
    parked: list[tuple[Candidate, datetime]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    stuck: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class ClaimWithinLimit:
    """Claims what the limit allows, in one transaction; ``claim`` makes the claims in it."""

    unit: UnitOfWork
    limit: RateLimit
    aging: Aging
    claim: ClaimThese

    def due(self, seats: int) -> Admitted:
        """Claim up to ``seats`` due jobs, sometimes fewer: see ``more``."""
        seats = min(seats, MOST_SEATS)
        gates = in_turn(self.unit.gates.due(seats, self.aging.after), self.aging)[:seats]
        due = self.unit.claims.lock_due(seats, self.aging)
        done = Admitted()
        self._round(done, due, seats, gates=[gate.recipient for gate in gates])
        # Gates that somebody else is at would keep us busy with nothing.
        open_gates = len(gates) == seats and not (done.busy or done.stuck)
        done.more = open_gates or seats in {len(due), len(done.claims)}
        if len(due) == seats and (done.parked or done.busy) and len(done.claims) < seats:
            due = self.unit.claims.lock_due(LOOK_AHEAD, self.aging, but_not_to=done.busy)
            self._round(done, due, seats)
            done.more = len(due) == LOOK_AHEAD or len(done.claims) == seats
        return done

    def suspect(self) -> Admitted:
        """Claim the most urgent suspect, if one is due and its recipient may be called."""
        done = Admitted()
        self._round(done, self.unit.claims.lock_suspect(), seats=1, parked_too=False)
        return done

    def _round(
        self,
        done: Admitted,
        due: Sequence[Candidate],
        seats: int,
        *,
        gates: Collection[str] = (),
        parked_too: bool = True,
    ) -> None:
        """Lock, look, decide, write: for the recipients of these jobs and of these gates."""
        recipients = {candidate.recipient for candidate in due}.union(gates)
        ours = self.unit.recipients.try_lock(recipients) if recipients else set()
        done.busy |= recipients - ours
        if not ours:
            return
        standing = self.unit.recipients.look(ours, self.limit)
        candidates = [candidate for candidate in due if candidate.recipient in ours]
        if parked_too:
            candidates += self._parked(standing)
        decision = admit(
            in_turn(candidates, self.aging),
            standing.slots,
            standing.now,
            self.limit,
            seats - len(done.claims),
        )
        refused = [candidate for candidate in decision.refused if not candidate.parked]
        if refused:
            self.unit.gates.make(refused, decision.opens_at, self.limit)
            self.unit.parking.park(refused)
            done.parked += [(each, decision.opens_at[each.recipient]) for each in refused]
        self._claim(done, decision.admitted)
        if standing.gated:
            self._settle(done, standing, decision)

    def _parked(self, standing: Standing) -> list[Candidate]:
        """As many of the best as there are free slots, and whoever holds a slot of its own."""
        if not standing.gated:
            return []
        free = free_slots(standing.gated, standing.slots, self.limit)
        gated = [slot for slot in standing.slots if slot.recipient in standing.gated]
        holders = [slot.job_id for slot in gated if slot.ended_at is not None]
        return self.unit.parking.lock_next(free, holders, self.aging.after)

    def _settle(self, done: Admitted, standing: Standing, decision: Decision) -> None:
        """Move or close the gates, after the claims, by which some have left them."""
        # Where nobody waits any more and nobody holds a slot, there was nothing to decide.
        opens_at = {each: decision.opens_at.get(each, standing.now) for each in standing.gated}
        closed = self.unit.gates.settle(opens_at, self.limit)
        gone = {candidate.recipient for candidate in decision.admitted}
        done.stuck |= any(opens_at[each] <= standing.now for each in standing.gated - closed - gone)

    def _claim(self, done: Admitted, admitted: Sequence[Candidate]) -> None:
        """A suspect that was parked takes its slot and goes back to be tried alone."""
        alone = [each.job_id for each in admitted if each.suspect and each.parked]
        if alone:
            self.unit.parking.unpark(alone)
            self.unit.recipients.reserve(alone, SUSPECT_WAIT)
        others = [each for each in admitted if not (each.suspect and each.parked)]
        done.claims += self.claim(others) if others else []
