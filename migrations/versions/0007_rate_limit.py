"""The rolling limit of a recipient: what was sent, and who waits for a slot (docs/decisions/0013).

The constraints of the queue hold for every write from here on; the next migration looks at the rows
that were there before, without holding anybody up.
"""

from alembic import op

revision = "0007_rate_limit"
down_revision = "0006_cursor_key"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_reservations()
    _create_gates()
    _tie_the_queue_to_gates()
    _create_view(
        next_attempt_at="coalesce(g.opens_at, q.due_at)",
        gates="LEFT JOIN rate_limit_gates g ON g.recipient = q.gate",
    )


def _create_reservations() -> None:
    op.execute(
        """
        CREATE TABLE rate_limit_reservations (
            job_id      uuid         NOT NULL,
            recipient   varchar(320) NOT NULL,
            -- When the notification's last attempt was over, by the clock and not by the beginning
            -- of a transaction.
            reserved_at timestamptz  NOT NULL DEFAULT clock_timestamp(),

            CONSTRAINT pk_rate_limit_reservations PRIMARY KEY (job_id),
            CONSTRAINT fk_rate_limit_reservations_job FOREIGN KEY (job_id)
                REFERENCES notification_jobs (id) ON DELETE CASCADE
        ) WITH (
            -- All of it is deleted sooner or later. Vacuum by number, as in the queue.
            autovacuum_vacuum_scale_factor = 0.02,
            autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0,
            autovacuum_analyze_scale_factor = 0.05
        )
        """
    )
    op.execute(
        "CREATE INDEX idx_rate_limit_reservations_recipient_time"
        " ON rate_limit_reservations (recipient, reserved_at)"
    )
    # For pruning.
    op.execute(
        "CREATE INDEX idx_rate_limit_reservations_time ON rate_limit_reservations (reserved_at)"
    )


def _create_gates() -> None:
    op.execute(
        """
        CREATE TABLE rate_limit_gates (
            recipient         varchar(320) NOT NULL,
            -- When a slot can be free next: at that time somebody looks.
            opens_at          timestamptz  NOT NULL,
            -- Of the best job that waits.
            priority          smallint     NOT NULL,
            -- The limit under which opens_at was found.
            max_notifications integer      NOT NULL,
            window_seconds    integer      NOT NULL,

            CONSTRAINT pk_rate_limit_gates PRIMARY KEY (recipient),
            CONSTRAINT ck_rate_limit_gates_priority CHECK (priority IN (1, 2, 3)),
            CONSTRAINT ck_rate_limit_gates_limit
                CHECK (max_notifications > 0 AND window_seconds > 0)
        ) WITH (
            fillfactor = 70,
            autovacuum_vacuum_scale_factor = 0,
            autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0
        )
        """
    )
    op.execute(
        "CREATE INDEX idx_rate_limit_gates_opening ON rate_limit_gates (priority DESC, opens_at)"
    )
    # Finds the gates that were set under another limit than the one in force.
    op.execute(
        "CREATE INDEX idx_rate_limit_gates_limit"
        " ON rate_limit_gates (max_notifications, window_seconds)"
    )


def _tie_the_queue_to_gates() -> None:
    """A parked job names the gate it waits at, so none can wait at a gate that is not there."""
    op.execute("UPDATE job_queue SET rate_limited = false WHERE rate_limited")
    op.execute("ALTER TABLE job_queue ADD COLUMN gate varchar(320)")
    op.execute(
        "ALTER TABLE job_queue ADD CONSTRAINT ck_job_queue_gate"
        " CHECK (gate IS NOT DISTINCT FROM CASE WHEN rate_limited THEN recipient END) NOT VALID"
    )
    op.execute(
        "ALTER TABLE job_queue ADD CONSTRAINT fk_job_queue_gate"
        " FOREIGN KEY (gate) REFERENCES rate_limit_gates (recipient) NOT VALID"
    )


def _create_view(next_attempt_at: str, gates: str) -> None:
    op.execute(
        f"""
        CREATE OR REPLACE VIEW job_overview AS
        SELECT j.id,
               j.idempotency_key,
               j.request_fingerprint,
               j.recipient,
               j.channel,
               j.payload,
               j.priority,
               CASE WHEN q.job_id IS NULL THEN j.outcome
                    WHEN q.claim_token IS NULL THEN 'PENDING'
                    ELSE 'PROCESSING' END AS status,
               j.scheduled_at,
               {next_attempt_at} AS next_attempt_at,
               coalesce(q.attempt_count, j.attempt_count) AS attempt_count,
               coalesce(q.max_attempts, j.max_attempts) AS max_attempts,
               q.rate_limited,
               q.reconciliation_granted,
               q.locked_at,
               q.locked_by,
               q.claim_token,
               j.last_error,
               CASE j.outcome WHEN 'SENT' THEN j.ended_at END AS sent_at,
               CASE j.outcome WHEN 'FAILED' THEN j.ended_at END AS failed_at,
               CASE j.outcome WHEN 'DEAD_LETTERED' THEN j.ended_at END AS dead_lettered_at,
               CASE j.outcome WHEN 'CANCELLED' THEN j.ended_at END AS cancelled_at,
               j.redrive_count,
               j.last_redriven_at,
               j.created_at,
               greatest(j.updated_at, q.locked_at) AS updated_at
          FROM notification_jobs j
          LEFT JOIN job_queue q ON q.job_id = j.id
          {gates}
        """  # noqa: S608 - both parts stand in this file
    )


def downgrade() -> None:
    _create_view(next_attempt_at="q.due_at", gates="")
    # Who is parked waits for nothing any more.
    op.execute("ALTER TABLE job_queue DROP CONSTRAINT fk_job_queue_gate")
    op.execute("ALTER TABLE job_queue DROP CONSTRAINT ck_job_queue_gate")
    op.execute("UPDATE job_queue SET rate_limited = false WHERE rate_limited")
    op.execute("ALTER TABLE job_queue DROP COLUMN gate")
    op.execute("DROP TABLE rate_limit_gates")
    op.execute("DROP TABLE rate_limit_reservations")
