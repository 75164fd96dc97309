"""Jobs in any state, written by the test itself, and looks at what became of them."""

from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Engine, text

from notify_queue.domain.job import Channel, NotificationRequest, Priority

_INSERT = text(
    """
    WITH job AS (
        INSERT INTO notification_jobs
            (id, idempotency_key, recipient, channel, payload, priority, scheduled_at, max_attempts)
        SELECT gen_random_uuid(), gen_random_uuid()::text,
               coalesce(:recipient, 'user' || n || '@example.com'), :channel,
               CAST(:payload AS jsonb), :priority,
               now() + make_interval(secs => :due_in_s), :max_attempts
          FROM generate_series(1, :count) n
        RETURNING id, priority, scheduled_at, recipient, max_attempts, created_at)
    INSERT INTO job_queue (job_id, priority, due_at, recipient, max_attempts, created_at)
    SELECT * FROM job RETURNING job_id
    """
)


class Jobs:
    """Writes and reads the tables directly."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self,
        count: int = 1,
        *,
        priority: Priority = Priority.NORMAL,
        due_in_s: float = 0,
        recipient: str | None = None,
        channel: Channel = Channel.EMAIL,
        max_attempts: int = 6,
        payload: str = '{"subject": "hello", "text": "world"}',
    ) -> list[UUID]:
        """Add waiting jobs and return their ids; ``payload`` is JSON."""
        with self._engine.begin() as connection:
            # The product's own deadline is not meant for hundreds of thousands at once.
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            added = connection.scalars(
                _INSERT,
                {
                    "count": count,
                    "priority": priority.value,
                    "due_in_s": due_in_s,
                    "recipient": recipient,
                    "channel": channel.value,
                    "max_attempts": max_attempts,
                    "payload": payload,
                },
            )
            return list(added)

    def park(self, *job_ids: UUID) -> None:
        """Let waiting jobs wait at their recipients' gates, which open in an hour."""
        self.run(
            "INSERT INTO rate_limit_gates SELECT DISTINCT recipient,"
            " now() + interval '1 hour', 2, 10, 3600 FROM job_queue WHERE job_id = ANY(:ids)"
            " ON CONFLICT DO NOTHING",
            ids=list(job_ids),
        )
        self.run(
            "UPDATE job_queue SET rate_limited = true, gate = recipient WHERE job_id = ANY(:ids)",
            ids=list(job_ids),
        )

    def one(self, statement: str, **values: Any) -> Any:
        """The first value of the first row of a statement."""
        with self._engine.begin() as connection:
            return connection.scalar(text(statement), values)

    def run(self, statement: str, **values: Any) -> None:
        """Run a statement, for its effect."""
        with self._engine.begin() as connection:
            connection.execute(text(statement), values)

    def row(self, job_id: UUID) -> dict[str, Any]:
        """The job as the overview shows it."""
        with self._engine.begin() as connection:
            found = connection.execute(
                text("SELECT * FROM job_overview WHERE id = :id"), {"id": job_id}
            )
            return dict(found.mappings().one())

    def statuses(self) -> dict[str, int]:
        """How many jobs stand in each status."""
        with self._engine.begin() as connection:
            counted = connection.execute(
                text("SELECT status, count(*) AS jobs FROM job_overview GROUP BY status")
            )
            return {row.status: row.jobs for row in counted}


def a_request(**changes: Any) -> NotificationRequest:
    """A request that is fine as it is, with a key of its own."""
    said: dict[str, Any] = {
        "recipient": "user@example.com",
        "channel": Channel.EMAIL,
        "payload": {"subject": "hello"},
        "priority": Priority.NORMAL,
        "idempotency_key": str(uuid4()),
        "delay_seconds": 1,
        **changes,
    }
    if "send_at" in changes:
        said.pop("delay_seconds")
    return NotificationRequest(**said)
