"""The order of sent jobs: an index that PostgreSQL cannot make (docs/decisions/0010)."""

from alembic import op

revision = "0004_sent_jobs"
down_revision = "0003_mock_provider_deliveries"
branch_labels = None
depends_on = None

_EVENTS = ("insert", "update", "delete")


def upgrade() -> None:
    _create_table()
    _create_functions()
    _create_triggers()


def _create_table() -> None:
    # No foreign key: its check would cost more than the row. The triggers keep the two together.
    op.execute(
        """
        CREATE TABLE sent_jobs (
            created_at timestamptz  NOT NULL,
            job_id     uuid         NOT NULL,
            recipient  varchar(320) NOT NULL,

            CONSTRAINT pk_sent_jobs PRIMARY KEY (created_at, job_id)
        )
        """
    )
    op.execute(
        "CREATE INDEX idx_sent_jobs_recipient"
        " ON sent_jobs (recipient, created_at DESC, job_id DESC)"
    )


def _create_functions() -> None:
    op.execute(
        """
        CREATE FUNCTION sent_jobs_after_insert() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO sent_jobs (created_at, job_id, recipient)
            VALUES (NEW.created_at, NEW.id, NEW.recipient);
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        """
        CREATE FUNCTION sent_jobs_after_update() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO sent_jobs (created_at, job_id, recipient)
            SELECT created_at, id, recipient FROM changed WHERE outcome = 'SENT'
                ON CONFLICT DO NOTHING;
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        """
        CREATE FUNCTION sent_jobs_after_delete() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM sent_jobs WHERE created_at = OLD.created_at AND job_id = OLD.id;
            RETURN NULL;
        END $$
        """
    )


def _create_triggers() -> None:
    # Once a statement, not once a row: a batch of completions is one insert more.
    op.execute(
        "CREATE TRIGGER sent_jobs_update AFTER UPDATE ON notification_jobs"
        " REFERENCING NEW TABLE AS changed"
        " FOR EACH STATEMENT EXECUTE FUNCTION sent_jobs_after_update()"
    )
    # Hardly ever, and for an ordinary new job only the condition is looked at.
    op.execute(
        "CREATE TRIGGER sent_jobs_insert AFTER INSERT ON notification_jobs"
        " FOR EACH ROW WHEN (NEW.outcome = 'SENT') EXECUTE FUNCTION sent_jobs_after_insert()"
    )
    op.execute(
        "CREATE TRIGGER sent_jobs_delete AFTER DELETE ON notification_jobs"
        " FOR EACH ROW WHEN (OLD.outcome = 'SENT') EXECUTE FUNCTION sent_jobs_after_delete()"
    )


def downgrade() -> None:
    for event in _EVENTS:
        op.execute(f"DROP TRIGGER sent_jobs_{event} ON notification_jobs")
        op.execute(f"DROP FUNCTION sent_jobs_after_{event}()")
    op.execute("DROP TABLE sent_jobs")
