"""A queue in memory behind the worker's seams: the unit of work and the provider."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from uuid import UUID, uuid4

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import sessionmaker

from notify_queue.delivery.provider import Message
from notify_queue.domain.aging import Aging
from notify_queue.domain.attempt import Candidate, Claim, Ended, Result
from notify_queue.domain.job import Channel, Priority
from notify_queue.domain.lifecycle import Status
from notify_queue.domain.outcome import Delivered, Outcome
from notify_queue.domain.rate_limit import Gate, RateLimit, Slot, Standing
from notify_queue.persistence.repositories.claims import Claims
from notify_queue.persistence.repositories.gates import Gates
from notify_queue.persistence.repositories.parking import Parking
from notify_queue.persistence.repositories.recipients import Recipients
from notify_queue.persistence.repositories.results import Results
from notify_queue.persistence.unit_of_work import UnitOfWork

RECIPIENT = "ada@example.com"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class InMemoryQueue:
    """Jobs that wait and batches that were recorded; calling it makes a unit of work on them.

    All are for one recipient. ``suspects`` are to be tried alone; ``fails_with`` makes every commit
    raise, ``refuses`` those with these jobs; ``stale`` are jobs that somebody else has claimed
    since; ``on_commit`` runs within a commit. ``slots`` are held already, ``parked`` are jobs that
    wait for one, at a gate that is due; ``busy`` says that somebody else decides just now.
    """

    waiting: list[UUID] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    aging: list[Aging] = field(default_factory=list)
    recorded: list[list[Result]] = field(default_factory=list)
    commits: int = 0
    next_due_s: float | None = None
    fails_with: BaseException | None = None
    suspects: set[UUID] = field(default_factory=set)
    looks_for_suspects: int = 0
    refuses: set[UUID] = field(default_factory=set)
    stale: set[UUID] = field(default_factory=set)
    on_commit: Callable[[], object] = lambda: None
    slots: list[Slot] = field(default_factory=list)
    parked: list[UUID] = field(default_factory=list)
    busy: bool = False
    next_gate_s: float | None = None
    reserved: list[list[UUID]] = field(default_factory=list)
    limited: list[bool] = field(default_factory=list)

    def __call__(self) -> UnitOfWork:
        return InMemoryUnit(self)

    def add(self, count: int) -> None:
        """Make this many jobs due."""
        self.waiting += [uuid4() for _ in range(count)]


class LockNotAvailable(Exception):  # noqa: N818 - the name PostgreSQL gives it
    """What the driver raises when a row is locked by somebody else."""

    pgcode = "55P03"


class InMemoryUnit(UnitOfWork):
    """The real one, guard and all, with a session that is bound to nothing."""

    def __init__(self, queue: InMemoryQueue) -> None:
        super().__init__(sessionmaker())
        self._queue = queue

    def commit(self) -> None:
        """Make what was recorded count, or fail as the test wants it."""
        self._queue.on_commit()
        if self._queue.fails_with is not None:
            raise self._queue.fails_with
        if self._queue.refuses & {each.claim.job_id for each in self._recorded}:
            raise DBAPIError(None, None, LockNotAvailable())
        self._queue.commits += 1
        if self._recorded:
            self._queue.recorded.append(self._recorded)
        if self._reserved:
            self._queue.reserved.append(self._reserved)

    @cached_property
    def _recorded(self) -> list[Result]:
        return []

    @cached_property
    def _reserved(self) -> list[UUID]:
        return []

    @cached_property
    def claims(self) -> Claims:
        """Hands out what waits."""
        return InMemoryClaims(self._queue)

    @cached_property
    def results(self) -> Results:
        """Keeps what is recorded until the commit."""
        return InMemoryResults(self._queue, self._recorded)

    @cached_property
    def recipients(self) -> Recipients:
        """Knows one recipient, and keeps reservations until the commit."""
        return InMemoryRecipients(self._queue, self._reserved)

    @cached_property
    def gates(self) -> Gates:
        """Has one, while jobs are parked."""
        return InMemoryGates(self._queue)

    @cached_property
    def parking(self) -> Parking:
        """Parks and lets out."""
        return InMemoryParking(self._queue)


class InMemoryClaims(Claims):
    """Claims jobs in the order in which they were added."""

    def __init__(self, queue: InMemoryQueue) -> None:
        self._queue = queue

    def lock_due(
        self, limit: int, aging: Aging, but_not_to: Collection[str] = ()
    ) -> list[Candidate]:
        self._queue.asked_for.append(limit)
        self._queue.aging.append(aging)
        if RECIPIENT in but_not_to:
            return []
        due = [each for each in self._queue.waiting if each not in self._queue.suspects]
        return [a_candidate(job_id=job_id) for job_id in due[:limit]]

    def lock_suspects(self, limit: int) -> list[Candidate]:
        due = [each for each in self._queue.waiting if each in self._queue.suspects]
        return [a_candidate(job_id=job_id, suspect=True) for job_id in due[:limit]]

    def suspect_waits(self) -> bool:
        self._queue.looks_for_suspects += 1
        return bool(self.lock_suspects(1))

    def claim(self, locked: Sequence[Candidate], worker_id: str, token: UUID) -> list[Claim]:
        assert worker_id
        job_ids = [each.job_id for each in locked]
        self._queue.waiting = [each for each in self._queue.waiting if each not in job_ids]
        self._queue.parked = [each for each in self._queue.parked if each not in job_ids]
        return [a_claim(job_id=job_id, token=token) for job_id in job_ids]

    def seconds_until_next(self) -> float | None:
        return self._queue.next_due_s


class InMemoryResults(Results):
    """Records results whose claim still stands."""

    def __init__(self, queue: InMemoryQueue, recorded: list[Result]) -> None:
        self._queue = queue
        self._recorded = recorded

    def record(self, results: Sequence[Result], *, limited: bool) -> set[UUID]:
        self._queue.limited.append(limited)
        kept = [each for each in results if each.claim.job_id not in self._queue.stale]
        self._recorded += kept
        return {each.claim.job_id for each in kept}


class InMemoryRecipients(Recipients):
    """Has the one lock free unless somebody else decides."""

    def __init__(self, queue: InMemoryQueue, reserved: list[UUID]) -> None:
        self._queue = queue
        self._reserved = reserved

    def try_lock(self, recipients: Collection[str]) -> set[str]:
        return set() if self._queue.busy else set(recipients)

    def look(self, recipients: Collection[str], limit: RateLimit) -> Standing:
        some = self._queue.slots[: limit.most + 1]
        return Standing(NOW, some, set(recipients) if self._queue.parked else set())

    def reserve(self, job_ids: Sequence[UUID], wait: timedelta) -> None:
        assert wait > timedelta(minutes=1)
        self._reserved += job_ids


class InMemoryGates(Gates):
    """One gate, as long as jobs are parked at it."""

    def __init__(self, queue: InMemoryQueue) -> None:
        self._queue = queue

    def due(
        self,
        limit: int,
        aging_after: timedelta,  # noqa: ARG002 - nothing grows old here
        but_not_to: Collection[str] = (),
    ) -> list[Gate]:
        gate = Gate(RECIPIENT, Priority.NORMAL, NOW, aged=False)
        return [gate][:limit] if self._queue.parked and RECIPIENT not in but_not_to else []

    def make(
        self,
        refused: Sequence[Candidate],
        opens_at: Mapping[str, datetime],
        limit: RateLimit,  # noqa: ARG002 - it never changes here
    ) -> None:
        assert refused
        assert RECIPIENT in opens_at

    def settle(
        self,
        opens_at: Mapping[str, datetime],
        limit: RateLimit,  # noqa: ARG002 - it never changes here
    ) -> set[str]:
        assert set(opens_at) == {RECIPIENT}
        return set() if self._queue.parked else {RECIPIENT}

    def seconds_until_next(self) -> float | None:
        return self._queue.next_gate_s


class InMemoryParking(Parking):
    """Keeps the jobs that are parked."""

    def __init__(self, queue: InMemoryQueue) -> None:
        self._queue = queue

    def lock_next(
        self,
        free: Mapping[str, int],
        holders: Sequence[UUID],  # noqa: ARG002 - the limit is never lowered here
        aging_after: timedelta,  # noqa: ARG002 - nothing grows old here
    ) -> list[Candidate]:
        return [
            a_candidate(job_id=job_id, suspect=job_id in self._queue.suspects, parked=True)
            for job_id in self._queue.parked[: free.get(RECIPIENT, 0)]
        ]

    def park(self, refused: Sequence[Candidate]) -> None:
        self._move([each.job_id for each in refused], self._queue.waiting, self._queue.parked)

    def unpark(self, job_ids: Sequence[UUID]) -> None:
        self._move(job_ids, self._queue.parked, self._queue.waiting)

    def _move(self, job_ids: Sequence[UUID], here: list[UUID], there: list[UUID]) -> None:
        for job_id in job_ids:
            here.remove(job_id)
            there.append(job_id)


@dataclass
class ScriptedProvider:
    """Does with each message what the test says, and remembers the messages."""

    act: Callable[[Message], Outcome] = lambda message: Delivered(message.delivery_key)
    messages: list[Message] = field(default_factory=list)

    def deliver(self, message: Message) -> Outcome:
        """Remember, then act."""
        self.messages.append(message)
        return self.act(message)


def a_candidate(
    *, job_id: UUID | None = None, suspect: bool = False, parked: bool = False
) -> Candidate:
    """Make a candidate for a first attempt."""
    return Candidate(
        job_id=job_id or uuid4(),
        recipient=RECIPIENT,
        priority=Priority.NORMAL,
        due_at=NOW,
        attempt=1,
        aged=False,
        suspect=suspect,
        parked=parked,
    )


def a_claim(
    *,
    job_id: UUID | None = None,
    token: UUID | None = None,
    attempt: int = 1,
    max_attempts: int = 6,
    priority: Priority = Priority.NORMAL,
    due_in_s: float = 0,
) -> Claim:
    """Make a claim of one attempt at one job."""
    return Claim(
        job_id=job_id or uuid4(),
        token=token or uuid4(),
        attempt=attempt,
        max_attempts=max_attempts,
        channel=Channel.EMAIL,
        recipient=RECIPIENT,
        payload={"subject": "Hello"},
        priority=priority,
        due_at=NOW + timedelta(seconds=due_in_s),
    )


def a_result() -> Result:
    """Make the result of an attempt that went well."""
    return Result(a_claim(), Delivered("message-1"), Ended(Status.SENT), duration_ms=12)
