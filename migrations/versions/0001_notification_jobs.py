"""The ledger: one row per notification, for ever."""

from alembic import op

revision = "0001_notification_jobs"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_table()
    _create_indexes()


def _create_table() -> None:
    op.execute(
        """
        CREATE TABLE notification_jobs (
            id                  uuid         NOT NULL,
            idempotency_key     varchar(255) NOT NULL,
            request_fingerprint char(64),
            recipient           varchar(320) NOT NULL,
            channel             varchar(16)  NOT NULL,
            payload             jsonb        NOT NULL,
            priority            smallint     NOT NULL,
            scheduled_at        timestamptz  NOT NULL,
            outcome             varchar(16),
            -- The outcomes that somebody looks for among many sent ones. A column of its own,
            -- because an update of `outcome` itself could not be heap-only if an index or an
            -- index predicate named it; this one stays NULL when a job is sent
            -- (docs/decisions/0002).
            unsent_outcome      varchar(16)  GENERATED ALWAYS AS (nullif(outcome, 'SENT')) STORED,
            ended_at            timestamptz,
            attempt_count       integer      NOT NULL DEFAULT 0,
            max_attempts        integer      NOT NULL,
            last_error          text,
            redrive_count       integer      NOT NULL DEFAULT 0,
            last_redriven_at    timestamptz,
            created_at          timestamptz  NOT NULL DEFAULT now(),
            updated_at          timestamptz  NOT NULL DEFAULT now(),

            CONSTRAINT pk_notification_jobs PRIMARY KEY (id),
            CONSTRAINT uq_notification_jobs_idempotency_key UNIQUE (idempotency_key),
            CONSTRAINT ck_notification_jobs_channel CHECK (channel IN ('EMAIL', 'SMS', 'PUSH')),
            CONSTRAINT ck_notification_jobs_payload CHECK (jsonb_typeof(payload) = 'object'),
            CONSTRAINT ck_notification_jobs_priority CHECK (priority IN (1, 2, 3)),
            CONSTRAINT ck_notification_jobs_outcome
                CHECK (outcome IN ('SENT', 'FAILED', 'DEAD_LETTERED', 'CANCELLED')),
            CONSTRAINT ck_notification_jobs_ended_at
                CHECK ((outcome IS NULL) = (ended_at IS NULL)),
            CONSTRAINT ck_notification_jobs_attempts
                CHECK (max_attempts > 0 AND attempt_count BETWEEN 0 AND max_attempts),
            CONSTRAINT ck_notification_jobs_redrive_count
                CHECK (redrive_count >= 0
                       AND (redrive_count = 0) = (last_redriven_at IS NULL))
        ) WITH (
            -- Room on each page for a second version of all its rows, since rows of one page
            -- often end in one batch. They stay on their page and no index is touched; heap and
            -- indexes together are smaller for it (docs/decisions/0002 has the measurement).
            fillfactor = 50,
            -- By default a tenth of all history must be new before statistics are renewed.
            autovacuum_analyze_scale_factor = 0.02,
            autovacuum_vacuum_insert_scale_factor = 0.05
        )
        """
    )


def _create_indexes() -> None:
    op.execute(
        "CREATE INDEX idx_notification_jobs_created ON notification_jobs (created_at DESC, id DESC)"
    )
    op.execute(
        "CREATE INDEX idx_notification_jobs_recipient_created"
        " ON notification_jobs (recipient, created_at DESC, id DESC)"
    )
    op.execute(
        "CREATE INDEX idx_notification_jobs_unsent"
        " ON notification_jobs (unsent_outcome, created_at DESC, id DESC)"
        " WHERE unsent_outcome IS NOT NULL"
    )


def downgrade() -> None:
    op.execute("DROP TABLE notification_jobs")
