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
# The same for gates whose recipients or jobs somebody else holds.
GATES_AHEAD: Final = 50
# So many are looked at to find one that may be called; the others are parked or left alone.
SUSPECTS: Final = 50
# Workers that are never idle make themselves idle for a suspect about once a minute.
SUSPECT_WAIT: Final = timedelta(minutes=2)

ClaimThese = Callable[[Sequence[Candidate]], list[Claim]]


@dataclass(slots=True)
class Admitted:
    """What a pass came to.

    ``parked`` are the jobs that it parked, each with the instant at which its recipient's gate may
    open. ``busy`` are recipients that somebody else decides about at this moment, ``stuck`` those
    with an open gate whose jobs somebody holds. ``full`` says that no seat was left, ``more`` that
    there may be more to claim at once.
    """

    claims: list[Claim] = field(default_factory=list)
    parked: list[tuple[Candidate, datetime]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    full: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True)
class ClaimWithinLimit:
    """Claims what the limit allows, in one transaction; ``claim`` makes the claims in it."""

    unit: UnitOfWork
    limit: RateLimit
    aging: Aging
    claim: ClaimThese

    def due(self, seats: int) -> Admitted:
        """Claim up to ``seats`` due jobs, at most ``MOST_SEATS``; sometimes fewer: see ``more``."""
        done = Admitted()
        for jobs, doors in ((seats, seats), (LOOK_AHEAD, max(seats, GATES_AHEAD))):
            others = done.busy | done.stuck
            open_gates = self.unit.gates.due(doors, self.aging.after, but_not_to=others)
            gates = [gate.recipient for gate in in_turn(open_gates, self.aging)[:doors]]
            due = self.unit.claims.lock_due(jobs, self.aging, but_not_to=others)
            got_on = self._round(done, due, seats, gates=gates)
            all_seen = len(due) < jobs and len(gates) < doors
            # What somebody else holds would keep us busy with nothing.
            done.more = done.full or (got_on and not all_seen)
            if done.full or all_seen or not (done.parked or done.busy or done.stuck):
                break
        return done

    def suspect(self) -> Admitted:
        """Claim the most urgent suspect whose recipient may be called, if one is due."""
        done = Admitted()
        self._round(done, self.unit.claims.lock_suspects(SUSPECTS), seats=1, parked_too=False)
        return done

    def _round(
        self,
        done: Admitted,
        due: Sequence[Candidate],
        seats: int,
        *,
        gates: Collection[str] = (),
        parked_too: bool = True,
    ) -> bool:
        """Lock, look, decide, write: for the recipients of these jobs and of these gates.

        Returns whether that changed anything.
        """
        recipients = {candidate.recipient for candidate in due}.union(gates)
        ours = self.unit.recipients.try_lock(recipients) if recipients else set()
        done.busy |= recipients - ours
        if not ours:
            return False
        standing = self.unit.recipients.look(ours, self.limit)
        rest = seats - len(done.claims)
        candidates = [candidate for candidate in due if candidate.recipient in ours]
        if parked_too:
            candidates += self._parked(standing, rest)
        in_order = in_turn(candidates, self.aging)
        decision = admit(in_order, standing.slots, standing.now, self.limit, rest)
        done.full = len(decision.admitted) == rest
        refused = [candidate for candidate in decision.refused if not candidate.parked]
        if refused:
            self.unit.gates.make(refused, decision.opens_at, self.limit)
            self.unit.parking.park(refused)
            done.parked += [(each, decision.opens_at[each.recipient]) for each in refused]
        self._claim(done, decision.admitted)
        # Who has not looked at the parked jobs cannot say when their gates are to open.
        moved = parked_too and self._settle(done, standing, decision)
        return bool(decision.admitted or refused) or moved

    def _parked(self, standing: Standing, seats: int) -> list[Candidate]:
        """As many of the best as there are free slots, and whoever holds a slot of its own."""
        if not standing.gated:
            return []
        slots = free_slots(standing.gated, standing.slots, self.limit)
        free = {recipient: min(count, seats) for recipient, count in slots.items()}
        holders = [slot.job_id for slot in standing.slots if slot.recipient in standing.gated]
        return self.unit.parking.lock_next(free, holders, self.aging.after)

    def _settle(self, done: Admitted, standing: Standing, decision: Decision) -> bool:
        """Move or close the gates, after the claims, by which some have left them.

        Returns whether one of them is not due any more.
        """
        if not standing.gated:
            return False
        # Where nobody waits any more and nobody holds a slot, there was nothing to decide.
        opens_at = {each: decision.opens_at.get(each, standing.now) for each in standing.gated}
        closed = self.unit.gates.settle(opens_at, self.limit)
        due = {each for each, opens in opens_at.items() if opens <= standing.now} - closed
        done.stuck |= due - {candidate.recipient for candidate in decision.admitted}
        return due < standing.gated

    def _claim(self, done: Admitted, admitted: Sequence[Candidate]) -> None:
        """A suspect that was parked takes its slot and goes back to be tried alone."""
        alone = [each.job_id for each in admitted if each.suspect and each.parked]
        if alone:
            self.unit.parking.unpark(alone)
            self.unit.recipients.reserve(alone, SUSPECT_WAIT)
        others = [each for each in admitted if not (each.suspect and each.parked)]
        done.claims += self.claim(others) if others else []
