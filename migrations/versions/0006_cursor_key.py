"""The key that page cursors are signed with, shared by all processes."""

from alembic import op

revision = "0006_cursor_key"
down_revision = "0005_listing_indexes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE signing_keys (
            purpose varchar(32) NOT NULL,
            key     bytea       NOT NULL,

            CONSTRAINT pk_signing_keys PRIMARY KEY (purpose),
            CONSTRAINT ck_signing_keys_length CHECK (octet_length(key) >= 32)
        )
        """
    )
    # Two random UUIDs: 244 random bits.
    op.execute(
        "INSERT INTO signing_keys (purpose, key)"
        " VALUES ('cursor', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))"
    )


def downgrade() -> None:
    op.execute("DROP TABLE signing_keys")
