"""The unit of work: one short transaction, opened per use, and the repositories in it."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cached_property
from types import TracebackType
from typing import Protocol, Self

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from notify_queue.persistence.repositories.claims import Claims
from notify_queue.persistence.repositories.gates import Gates
from notify_queue.persistence.repositories.intake import Intake
from notify_queue.persistence.repositories.listing import Listing
from notify_queue.persistence.repositories.mock_receipts import MockReceipts
from notify_queue.persistence.repositories.mock_records import MockRecords
from notify_queue.persistence.repositories.operations import Operations
from notify_queue.persistence.repositories.outbox import Outbox
from notify_queue.persistence.repositories.parking import Parking
from notify_queue.persistence.repositories.reading import Reading
from notify_queue.persistence.repositories.recipients import Recipients
from notify_queue.persistence.repositories.recovery import Recovery
from notify_queue.persistence.repositories.results import Results
from notify_queue.persistence.repositories.revival import Revival
from notify_queue.persistence.repositories.seeding import Seeding
from notify_queue.persistence.repositories.webhook_results import WebhookResults

# How many units this greenlet (or thread) has open; each greenlet starts with an empty context.
_open: ContextVar[int] = ContextVar("open_units_of_work", default=0)


class OpenUnitOfWorkError(RuntimeError):
    """A network call was about to be made with a transaction open."""


class UnitOfWork:
    """A context manager around one transaction: rolled back on exit unless it was committed.

    Made anew for each use and never shared: two greenlets on one connection would mix their
    transactions.
    """

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        """Open nothing yet; the connection is taken by the first statement."""
        self._sessions = sessions

    def __enter__(self) -> Self:
        """Open the session."""
        self._session = self._sessions()
        self._opened = _open.set(_open.get() + 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Roll back what was not committed and give the connection back."""
        _open.reset(self._opened)
        if error is None or isinstance(error, Exception):
            self._session.close()
        else:
            # A green timeout or kill may have struck in the middle of a statement, which the
            # server may still finish. That connection must not be used again (pitfall G1).
            self._session.invalidate()

    def commit(self) -> None:
        """Make the work durable. The only commit in the product."""
        self._session.commit()

    def savepoint(self) -> AbstractContextManager[object]:
        """A part that can fail alone: what it wrote is taken back, and the rest goes on."""
        return self._session.begin_nested()

    @cached_property
    def intake(self) -> Intake:
        """New jobs."""
        return Intake(self._session)

    @cached_property
    def reading(self) -> Reading:
        """Jobs as callers see them."""
        return Reading(self._session)

    @cached_property
    def listing(self) -> Listing:
        """Pages of jobs."""
        return Listing(self._session)

    @cached_property
    def operations(self) -> Operations:
        """What operators do to jobs."""
        return Operations(self._session)

    @cached_property
    def claims(self) -> Claims:
        """Due jobs, handed out to one worker each."""
        return Claims(self._session)

    @cached_property
    def recipients(self) -> Recipients:
        """Who holds a slot of whom."""
        return Recipients(self._session)

    @cached_property
    def gates(self) -> Gates:
        """When a slot can be free."""
        return Gates(self._session)

    @cached_property
    def parking(self) -> Parking:
        """Jobs that wait for a slot."""
        return Parking(self._session)

    @cached_property
    def results(self) -> Results:
        """What became of claimed jobs."""
        return Results(self._session)

    @cached_property
    def recovery(self) -> Recovery:
        """Claims whose lease is over."""
        return Recovery(self._session)

    @cached_property
    def outbox(self) -> Outbox:
        """Events that the webhook's receiver is to be told of."""
        return Outbox(self._session)

    @cached_property
    def webhook_results(self) -> WebhookResults:
        """What attempts at events came to."""
        return WebhookResults(self._session)

    @cached_property
    def revival(self) -> Revival:
        """Events that were given up."""
        return Revival(self._session)

    @cached_property
    def seeding(self) -> Seeding:
        """The example jobs."""
        return Seeding(self._session)

    @cached_property
    def mock_records(self) -> MockRecords:
        """The mock provider's own store."""
        return MockRecords(self._session)

    @cached_property
    def mock_receipts(self) -> MockReceipts:
        """The mock receiver's own store."""
        return MockReceipts(self._session)


class UnitOfWorkFactory(Protocol):
    """Makes a unit of work for one use."""

    def __call__(self) -> UnitOfWork:
        """Make a fresh one."""
        ...


def unit_of_work_factory(engine: Engine) -> UnitOfWorkFactory:
    """Bind the unit of work to an engine."""
    # Rows are turned into plain values before the commit, so nothing need be read again.
    sessions = sessionmaker(engine, expire_on_commit=False)
    return lambda: UnitOfWork(sessions)


def concerns_rows(error: BaseException) -> bool:
    """Whether the server refused what was asked, rather than being away.

    With a SQLSTATE it has answered: a lock was not to be had, a value or a constraint was violated.
    Classes 08 and 57P are its words for connections and shutdowns.
    """
    code: str | None = getattr(getattr(error, "orig", None), "pgcode", None)
    return code is not None and not code.startswith(("08", "57P"))


def refuses_a_row(error: BaseException) -> bool:
    """Whether the server will refuse the same again: a value or a constraint, or a trigger's word.

    Classes 22, 23 and P0. In a batch it is one row's fault, and the others can be written.
    """
    code: str | None = getattr(getattr(error, "orig", None), "pgcode", None)
    return code is not None and code.startswith(("22", "23", "P0"))


def refuse_open_unit_of_work(action: str) -> None:
    """Guard a network call: no transaction may be open while it waits for a stranger.

    Raises:
        OpenUnitOfWorkError: this greenlet has a unit of work open.
    """
    if _open.get():
        raise OpenUnitOfWorkError(f"{action} inside an open unit of work")
