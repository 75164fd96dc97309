"""An outbox in memory behind the webhooks' seams: the unit of work and the POST."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from uuid import UUID, uuid4

from sqlalchemy.orm import sessionmaker

from notify_queue.domain.lifecycle import Status
from notify_queue.domain.retry import Backoff
from notify_queue.domain.webhook_event import (
    Answer,
    Answered,
    Dispatch,
    DueEvent,
    Posted,
    Received,
    Verdict,
    WebhookEvent,
)
from notify_queue.persistence.repositories.outbox import Outbox
from notify_queue.persistence.repositories.webhook_results import WebhookResults
from notify_queue.persistence.unit_of_work import UnitOfWork

NOW = datetime(2026, 3, 1, 12, 0, 0, 400_000, tzinfo=UTC)
LEASE_S = 10
MAX_ATTEMPTS = 10
BACKOFF = Backoff(base_ms=1_000, max_ms=60_000)


@dataclass
class InMemoryOutbox:
    """Events that are due and results that were recorded; calling it makes a unit of work on them.

    ``held`` are locked by somebody else and ``stale`` somebody else's by now. ``on_lock`` and
    ``on_commit`` run within the looking for due events and within a commit, which fails with what
    they raise.
    """

    due: list[DueEvent] = field(default_factory=list)
    asked_for: list[int] = field(default_factory=list)
    leases: list[timedelta] = field(default_factory=list)
    given_up: list[tuple[UUID, str | None]] = field(default_factory=list)
    recorded: list[list[Posted]] = field(default_factory=list)
    offered: list[list[Posted]] = field(default_factory=list)
    next_due_s: float | None = None
    held: set[UUID] = field(default_factory=set)
    stale: set[UUID] = field(default_factory=set)
    on_commit: Callable[[], object] = lambda: None
    on_lock: Callable[[], object] = lambda: None

    def __call__(self) -> UnitOfWork:
        return InMemoryUnit(self)

    def add(self, count: int) -> "list[DueEvent]":
        """Make this many new events due, and return them."""
        added = [a_due_event() for _ in range(count)]
        self.due += added
        return added

    @property
    def written(self) -> list[Posted]:
        """All that was recorded."""
        return [each for batch in self.recorded for each in batch]


class InMemoryUnit(UnitOfWork):
    """The real one, guard and all, with a session that is bound to nothing."""

    def __init__(self, outbox: InMemoryOutbox) -> None:
        super().__init__(sessionmaker())
        self._outbox = outbox

    def commit(self) -> None:
        """Make what was recorded count, or fail as the test wants it."""
        self._outbox.on_commit()
        if self._recorded:
            self._outbox.recorded.append(self._recorded)

    @cached_property
    def _recorded(self) -> list[Posted]:
        return []

    @cached_property
    def outbox(self) -> Outbox:
        """Hands out what is due."""
        return InMemoryEvents(self._outbox)

    @cached_property
    def webhook_results(self) -> WebhookResults:
        """Keeps what is recorded until the commit."""
        return InMemoryResults(self._outbox, self._recorded)


class InMemoryEvents(Outbox):
    """Hands events out in the order in which they were added."""

    def __init__(self, outbox: InMemoryOutbox) -> None:
        self._outbox = outbox

    def lock_due(self, limit: int) -> list[DueEvent]:
        self._outbox.on_lock()
        self._outbox.asked_for.append(limit)
        return self._outbox.due[:limit]

    def take(self, locked: Sequence[DueEvent], lease: timedelta) -> list[Dispatch]:
        self._outbox.leases.append(lease)
        self._outbox.due = [each for each in self._outbox.due if each not in locked]
        return [
            Dispatch(each.event, each.attempts + 1, each.attempts + 1 - each.forgiven, NOW)
            for each in locked
        ]

    def give_up(self, locked: Sequence[tuple[UUID, str | None]]) -> None:
        self._outbox.given_up += locked
        ended = {event_id for event_id, _ in locked}
        self._outbox.due = [each for each in self._outbox.due if each.event.event_id not in ended]

    def seconds_until_next(self) -> float | None:
        return self._outbox.next_due_s


class InMemoryResults(WebhookResults):
    """Records what nobody holds and nobody has overtaken."""

    def __init__(self, outbox: InMemoryOutbox, recorded: list[Posted]) -> None:
        self._outbox = outbox
        self._recorded = recorded

    def record(self, posted: Sequence[Posted]) -> list[bool | None]:
        self._outbox.offered.append(list(posted))
        answers: list[bool | None] = []
        for each in posted:
            event_id = each.dispatch.event.event_id
            held, stale = event_id in self._outbox.held, event_id in self._outbox.stale
            answers.append(None if held else not stale)
            self._recorded += [each] if answers[-1] else []
        return answers


@dataclass
class ScriptedPost:
    """Answers each POST as the test says, and remembers what was sent."""

    act: Callable[[], Answer] = lambda: Answered(200)
    sent: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Remember, then answer."""
        self.sent.append((body, dict(headers)))
        return self.act()


def an_event() -> WebhookEvent:
    """Make the event of a job that was sent."""
    return WebhookEvent(
        event_id=uuid4(),
        job_id=uuid4(),
        status=Status.SENT,
        attempt_count=1,
        redrive_count=0,
        occurred_at=NOW,
    )


def a_due_event(
    *, attempts: int = 0, forgiven: int = 0, lost: bool = False, last_error: str | None = None
) -> DueEvent:
    """Make an event whose turn it is."""
    return DueEvent(an_event(), attempts, forgiven, lost, last_error)


def a_dispatch(*, attempt: int = 1, spent: int | None = None, taken_at: datetime = NOW) -> Dispatch:
    """Make an attempt at a new event."""
    return Dispatch(an_event(), attempt, attempt if spent is None else spent, taken_at)


def a_posted(verdict: Verdict | None = None, answer: Answer | None = None) -> Posted:
    """Make what an attempt came to, which went well unless it is said otherwise."""
    return Posted(a_dispatch(attempt=3), answer or Answered(200), verdict or Received())
