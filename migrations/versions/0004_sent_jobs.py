"""The order of sent jobs: an index that PostgreSQL cannot make (docs/decisions/0010)."""

from alembic import op

revision = "0004_sent_jobs"
down_revision = "0003_mock_provider_deliveries"
branch_labels = None
depends_on = None

# By the trigger's name, the function that it calls.
_TRIGGERS = {
    "sent_jobs_update": "sent_jobs_after_update",
    "sent_jobs_insert": "sent_jobs_after_insert",
    "sent_jobs_delete": "sent_jobs_after_delete",
    "sent_jobs_change": "sent_jobs_after_delete",
    "sent_jobs_truncate": "sent_jobs_after_truncate",
}


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
    op.execute("CREATE INDEX idx_sent_jobs_recipient ON sent_jobs (recipient, created_at, job_id)")


def _create_functions() -> None:
    op.execute(
        """
        CREATE FUNCTION sent_jobs_after_insert() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO sent_jobs (created_at, job_id, recipient)
            VALUES (NEW.created_at, NEW.id, NEW.recipient)
                ON CONFLICT DO NOTHING;
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
    op.execute(
        """
        CREATE FUNCTION sent_jobs_after_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            TRUNCATE sent_jobs;
            RETURN NULL;
        END $$
        """
    )


def _create_triggers() -> None:
    # The one that completions meet: once a statement, so that a batch is one insert more.
    op.execute(
        "CREATE TRIGGER sent_jobs_update AFTER UPDATE ON notification_jobs"
        " REFERENCING NEW TABLE AS changed"
        " FOR EACH STATEMENT EXECUTE FUNCTION sent_jobs_after_update()"
    )
    # The others are for examples, retention and corrections by hand. An ordinary statement only has
    # their conditions looked at.
    op.execute(
        "CREATE TRIGGER sent_jobs_insert AFTER INSERT ON notification_jobs"
        " FOR EACH ROW WHEN (NEW.outcome = 'SENT') EXECUTE FUNCTION sent_jobs_after_insert()"
    )
    op.execute(
        "CREATE TRIGGER sent_jobs_delete AFTER DELETE ON notification_jobs"
        " FOR EACH ROW WHEN (OLD.outcome = 'SENT') EXECUTE FUNCTION sent_jobs_after_delete()"
    )
    # Takes the old place away; the trigger of the statement comes later and enters the new one.
    op.execute(
        "CREATE TRIGGER sent_jobs_change"
        " AFTER UPDATE OF id, created_at, recipient, outcome ON notification_jobs"
        " FOR EACH ROW WHEN (OLD.outcome = 'SENT' AND"
        " (OLD.id, OLD.created_at, OLD.recipient, OLD.outcome)"
        " IS DISTINCT FROM (NEW.id, NEW.created_at, NEW.recipient, NEW.outcome))"
        " EXECUTE FUNCTION sent_jobs_after_delete()"
    )
    op.execute(
        "CREATE TRIGGER sent_jobs_truncate AFTER TRUNCATE ON notification_jobs"
        " FOR EACH STATEMENT EXECUTE FUNCTION sent_jobs_after_truncate()"
    )


def downgrade() -> None:
    for trigger in _TRIGGERS:
        op.execute(f"DROP TRIGGER {trigger} ON notification_jobs")
    for function in sorted(set(_TRIGGERS.values())):
        op.execute(f"DROP FUNCTION {function}()")
    op.execute("DROP TABLE sent_jobs")
