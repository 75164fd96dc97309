"""The webhook outbox: one event for every job that an attempt, or the loss of one, has ended.

Jobs that have ended before have none: nobody was waiting to be told of them.
"""

from alembic import op

revision = "0009_webhook_events"
down_revision = "0008_parked_jobs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE webhook_events (
            id                uuid        NOT NULL,
            job_id            uuid        NOT NULL,
            status            varchar(16) NOT NULL,
            attempt_count     integer     NOT NULL,
            redrive_count     integer     NOT NULL DEFAULT 0,
            occurred_at       timestamptz NOT NULL,
            -- Counted when a worker takes the event, so also when that is its end.
            dispatch_attempts integer     NOT NULL DEFAULT 0,
            -- Those made before an operator revived the event: they do not count as spent, and
            -- no attempt's number is ever used twice.
            forgiven_attempts integer     NOT NULL DEFAULT 0,
            next_attempt_at   timestamptz NOT NULL DEFAULT now(),
            -- In no index, so that taking an event is a heap-only update.
            leased_until      timestamptz,
            last_error        text,
            delivered_at      timestamptz,
            failed_at         timestamptz,
            created_at        timestamptz NOT NULL DEFAULT now(),

            CONSTRAINT pk_webhook_events PRIMARY KEY (id),
            -- A generation of a job ends once.
            CONSTRAINT uq_webhook_events_job_generation UNIQUE (job_id, redrive_count),
            CONSTRAINT fk_webhook_events_job FOREIGN KEY (job_id)
                REFERENCES notification_jobs (id) ON DELETE CASCADE,
            CONSTRAINT ck_webhook_events_status
                CHECK (status IN ('SENT', 'FAILED', 'DEAD_LETTERED')),
            CONSTRAINT ck_webhook_events_counts
                CHECK (attempt_count >= 0 AND redrive_count >= 0
                       AND forgiven_attempts BETWEEN 0 AND dispatch_attempts),
            -- Delivered and given up at once cannot be.
            CONSTRAINT ck_webhook_events_end CHECK (num_nonnulls(delivered_at, failed_at) < 2),
            CONSTRAINT ck_webhook_events_lease
                CHECK (leased_until IS NULL
                       OR (dispatch_attempts > 0 AND num_nonnulls(delivered_at, failed_at) = 0))
        ) WITH (
            -- Room on each page for the version that taking makes of all its events, since rows of
            -- one page are often taken together (docs/decisions/0014 has the measurement).
            fillfactor = 50,
            autovacuum_vacuum_scale_factor = 0.02,
            autovacuum_vacuum_threshold = 2000,
            autovacuum_vacuum_cost_delay = 0,
            autovacuum_analyze_scale_factor = 0.02,
            autovacuum_vacuum_insert_scale_factor = 0.05
        )
        """
    )
    op.execute(
        "CREATE INDEX idx_webhook_events_due ON webhook_events (next_attempt_at)"
        " WHERE delivered_at IS NULL AND failed_at IS NULL"
    )
    # For whoever counts or revives those that were given up.
    op.execute(
        "CREATE INDEX idx_webhook_events_given_up ON webhook_events (failed_at, id)"
        " WHERE failed_at IS NOT NULL"
    )


def downgrade() -> None:
    op.execute("DROP TABLE webhook_events")
