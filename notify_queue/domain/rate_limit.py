"""The rolling limit: how many different notifications one recipient is sent within any window.

A notification holds a slot from its claim until a window after its last attempt has ended. Nobody
outside knows when within an attempt the provider acts, so no shorter hold keeps the limit there
(docs/decisions/0013).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from uuid import UUID

from notify_queue.domain.attempt import Candidate
from notify_queue.domain.job import Priority


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``most`` different notifications for one recipient within ``window``."""

    most: int
    window: timedelta


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that a notification holds. ``ended_at`` is None while an attempt is running."""

    recipient: str
    job_id: UUID
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of some recipients: the slots that count ``now``, and who has jobs parked."""

    now: datetime
    slots: list[Slot]
    gated: set[str]


@dataclass(frozen=True, slots=True)
class Gate:
    """The recipient of parked jobs: its best one's priority, and when it is due to be looked at.

    ``aged`` says that this has been so for longer than the starvation bound allows.
    """

    recipient: str
    priority: Priority
    due_at: datetime
    aged: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """Who may be called now and who may not, in the order of the candidates.

    ``opens_at`` says for every recipient when a slot can be free next: now, or no earlier than
    then. An attempt that is still running may move that on.
    """

    admitted: list[Candidate]
    refused: list[Candidate]
    opens_at: dict[str, datetime]


def admit(
    candidates: Sequence[Candidate],
    slots: Sequence[Slot],
    now: datetime,
    limit: RateLimit,
    seats: int,
) -> Decision:
    """Admit up to ``seats`` candidates, first come, first served.

    One rule: whoever finds fewer than ``limit.most`` *other* notifications holding slots of its
    recipient is admitted. So a notification that holds one itself needs no second one, and after
    the limit was lowered everybody waits until the lower one is kept.

    ``slots`` are those of all recipients concerned: of every attempt that runs, and of every
    notification whose last one ended within the window before ``now``. Candidates beyond the last
    seat are neither admitted nor refused.
    """
    held: dict[str, dict[UUID, datetime]] = defaultdict(dict)
    # Of a notification whose second attempt is running, what the first has left counts no more.
    for slot in sorted(slots, key=lambda slot: (slot.ended_at is None, slot.ended_at or now)):
        held[slot.recipient][slot.job_id] = slot.ended_at or now
    admitted: list[Candidate] = []
    refused: list[Candidate] = []
    for candidate in candidates:
        if len(admitted) == seats:
            break
        of_recipient = held[candidate.recipient]
        others = len(of_recipient) - (candidate.job_id in of_recipient)
        if others < limit.most:
            admitted.append(candidate)
            of_recipient[candidate.job_id] = now
        else:
            refused.append(candidate)
    recipients = held.keys() | {candidate.recipient for candidate in candidates}
    opens_at = {each: _opens_at(held[each].values(), now, limit) for each in recipients}
    for candidate in refused:
        # One that holds a slot itself, after the limit was lowered, may be the first to go.
        of_recipient = held[candidate.recipient]
        if candidate.job_id in of_recipient:
            theirs = [at for job_id, at in of_recipient.items() if job_id != candidate.job_id]
            its_own = _opens_at(theirs, now, limit)
            opens_at[candidate.recipient] = min(its_own, opens_at[candidate.recipient])
    return Decision(admitted, refused, opens_at)


def free_slots(
    recipients: Iterable[str], slots: Sequence[Slot], limit: RateLimit
) -> dict[str, int]:
    """How many slots these recipients have free, those alone that have any."""
    held: dict[str, set[UUID]] = defaultdict(set)
    for slot in slots:
        held[slot.recipient].add(slot.job_id)
    free = {recipient: limit.most - len(held[recipient]) for recipient in recipients}
    return {recipient: count for recipient, count in free.items() if count > 0}


def _opens_at(held: Collection[datetime], now: datetime, limit: RateLimit) -> datetime:
    """When fewer than ``limit.most`` will be left; an attempt that runs is taken to end now."""
    if len(held) < limit.most:
        return now
    return nlargest(limit.most, held)[-1] + limit.window
