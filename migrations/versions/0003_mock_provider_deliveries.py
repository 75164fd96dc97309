"""The mock provider's own record of the keys it has accepted."""

from alembic import op

revision = "0003_mock_provider_deliveries"
down_revision = "0002_job_queue"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE mock_provider_deliveries (
            delivery_key varchar(255) NOT NULL,
            message_id   uuid         NOT NULL DEFAULT gen_random_uuid(),
            recipient    varchar(320) NOT NULL,
            channel      varchar(16)  NOT NULL,
            delivered_at timestamptz  NOT NULL DEFAULT now(),

            CONSTRAINT pk_mock_provider_deliveries PRIMARY KEY (delivery_key)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE mock_provider_deliveries")
