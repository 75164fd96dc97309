"""The mock provider's own store, which a real provider would keep at its end."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from notify_queue.persistence.models import MockProviderDelivery as Delivery


class MockRecords:
    """Which delivery keys the mock has accepted, under which message ids."""

    def __init__(self, session: Session) -> None:
        """Work in the transaction of ``session``."""
        self._session = session

    def accepted(self, keys: Iterable[str]) -> dict[str, UUID]:
        """The message ids of those keys that were accepted before."""
        found = select(Delivery.delivery_key, Delivery.message_id).where(
            Delivery.delivery_key.in_(keys)
        )
        return dict(self._session.execute(found).all())

    def accept(self, rows: Sequence[Mapping[str, str]]) -> dict[str, UUID]:
        """Record keys (with ``recipient`` and ``channel``) and return those that are new.

        A key that somebody else records at this moment makes us wait for them, then is not new.
        Rows go in key order, so that two callers queue up instead of deadlocking.
        """
        new = (
            insert(Delivery)
            .values(sorted(rows, key=lambda row: row["delivery_key"]))
            .on_conflict_do_nothing()
            .returning(Delivery.delivery_key, Delivery.message_id)
        )
        return dict(self._session.execute(new).all())
