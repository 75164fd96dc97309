"""The work: one small row per live job, and the view that shows ledger and queue as one."""

from alembic import op

revision = "0002_job_queue"
down_revision = "0001_notification_jobs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_table()
    _create_indexes()
    _create_view()


def _create_table() -> None:
    op.execute(
        """
        CREATE TABLE job_queue (
            job_id                 uuid         NOT NULL,
            priority               smallint     NOT NULL,
            due_at                 timestamptz  NOT NULL,
            recipient              varchar(320) NOT NULL,
            rate_limited           boolean      NOT NULL DEFAULT false,
            attempt_count          integer      NOT NULL DEFAULT 0,
            max_attempts           integer      NOT NULL,
            reconciliation_granted boolean      NOT NULL DEFAULT false,
            claim_token            uuid,
            locked_by              varchar(128),
            locked_at              timestamptz,
            created_at             timestamptz  NOT NULL,

            CONSTRAINT pk_job_queue PRIMARY KEY (job_id),
            CONSTRAINT fk_job_queue_job FOREIGN KEY (job_id)
                REFERENCES notification_jobs (id) ON DELETE CASCADE,
            CONSTRAINT ck_job_queue_priority CHECK (priority IN (1, 2, 3)),
            CONSTRAINT ck_job_queue_attempts
                CHECK (max_attempts > 0 AND attempt_count BETWEEN 0 AND max_attempts),
            -- A claim is whole or absent: no orphaned claim, no waiting job that names an owner.
            CONSTRAINT ck_job_queue_claim
                CHECK (num_nonnulls(claim_token, locked_by, locked_at) IN (0, 3)),
            -- Who waits has an attempt left: a claim of one that had not would fail, and with it
            -- the whole batch, again and again.
            CONSTRAINT ck_job_queue_attempt_left
                CHECK (claim_token IS NOT NULL OR attempt_count < max_attempts),
            -- A claimed job has made an attempt; a parked one is not claimed.
            CONSTRAINT ck_job_queue_claimed
                CHECK (claim_token IS NULL OR (attempt_count > 0 AND NOT rate_limited))
        ) WITH (
            fillfactor = 70,
            -- Every job leaves dead rows here. Vacuum by number, not by share of the table: a
            -- queue of a million future jobs must not hide ten thousand dead due ones.
            autovacuum_vacuum_scale_factor = 0,
            autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0,
            autovacuum_analyze_scale_factor = 0.05,
            autovacuum_analyze_threshold = 2000
        )
        """
    )


def _create_indexes() -> None:
    op.execute(
        "CREATE INDEX idx_job_queue_claimable ON job_queue (priority DESC, due_at, created_at)"
        " WHERE claim_token IS NULL AND NOT rate_limited"
    )
    op.execute(
        "CREATE INDEX idx_job_queue_parked ON job_queue (recipient, priority DESC, due_at)"
        " WHERE rate_limited"
    )
    op.execute(
        "CREATE INDEX idx_job_queue_leases ON job_queue (locked_at) WHERE claim_token IS NOT NULL"
    )
    op.execute("CREATE INDEX idx_job_queue_created ON job_queue (created_at DESC, job_id DESC)")


def _create_view() -> None:
    op.execute(
        """
        CREATE VIEW job_overview AS
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
               q.due_at AS next_attempt_at,
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
               -- While a job lives its claim is in the queue alone; greatest() passes over NULL.
               greatest(j.updated_at, q.locked_at) AS updated_at
          FROM notification_jobs j
          LEFT JOIN job_queue q ON q.job_id = j.id
        """
    )


def downgrade() -> None:
    op.execute("DROP VIEW job_overview")
    op.execute("DROP TABLE job_queue")
