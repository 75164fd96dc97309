"""Webhook events in any state, written by the test itself, and looks at what became of them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Engine, text

_INSERT = text(
    """
    WITH job AS (
        INSERT INTO notification_jobs
            (id, idempotency_key, recipient, channel, payload, priority, scheduled_at,
             max_attempts, attempt_count, outcome, ended_at)
        SELECT gen_random_uuid(), gen_random_uuid()::text, 'told@example.com', 'EMAIL', '{}', 2,
               now(), 6, 1, 'SENT', now()
          FROM generate_series(1, :count)
        RETURNING id)
    INSERT INTO webhook_events (id, job_id, status, attempt_count, occurred_at, next_attempt_at)
    SELECT gen_random_uuid(), id, 'SENT', 1, now(),
           now() + make_interval(secs => :due_in_s + row_number() OVER () * 0.000001)
      FROM job
    RETURNING id
    """
)


class Events:
    """Writes and reads the outbox directly."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, count: int = 1, *, due_in_s: float = -1) -> list[UUID]:
        """Add events of jobs that were sent and return their ids, the one due first first."""
        with self._engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            added = connection.scalars(_INSERT, {"count": count, "due_in_s": due_in_s})
            return list(added)

    def row(self, event_id: UUID) -> dict[str, Any]:
        """One event."""
        with self._engine.begin() as connection:
            found = connection.execute(
                text("SELECT * FROM webhook_events WHERE id = :id"), {"id": event_id}
            )
            return dict(found.mappings().one())

    def of(self, job_id: UUID) -> list[dict[str, Any]]:
        """The events of a job, by generation."""
        with self._engine.begin() as connection:
            found = connection.execute(
                text("SELECT * FROM webhook_events WHERE job_id = :id ORDER BY redrive_count"),
                {"id": job_id},
            )
            return [dict(row) for row in found.mappings()]

    def change(self, event_id: UUID, assignments: str) -> None:
        """Write to an event, in SQL."""
        with self._engine.begin() as connection:
            connection.execute(
                text(f"UPDATE webhook_events SET {assignments} WHERE id = :id"), {"id": event_id}
            )

    def delivered(self) -> int:
        """How many were delivered."""
        return self.count("delivered_at IS NOT NULL")

    def count(self, condition: str) -> int:
        """How many meet a condition, in SQL."""
        with self._engine.begin() as connection:
            counted = text(f"SELECT count(*) FROM webhook_events WHERE {condition}")
            return int(connection.scalar(counted) or 0)
