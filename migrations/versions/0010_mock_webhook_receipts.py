"""What the mock receiver has got: it stands for the store that a real receiver keeps at its end."""

from alembic import op

revision = "0010_mock_webhook_receipts"
down_revision = "0009_webhook_events"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE mock_webhook_receipts (
            event_id          uuid        NOT NULL,
            job_id            uuid        NOT NULL,
            status            varchar(16) NOT NULL,
            received_count    integer     NOT NULL DEFAULT 1,
            first_received_at timestamptz NOT NULL DEFAULT now(),
            last_received_at  timestamptz NOT NULL DEFAULT now(),

            CONSTRAINT pk_mock_webhook_receipts PRIMARY KEY (event_id)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE mock_webhook_receipts")
