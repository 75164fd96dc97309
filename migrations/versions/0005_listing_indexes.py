"""Every listing is a range of one index for each status, and suspects are found by one.

docs/decisions/0010 has the listings, 0011 the suspects.
"""

from alembic import op

revision = "0005_listing_indexes"
down_revision = "0004_sent_jobs"
branch_labels = None
depends_on = None

_NEW = {
    # Waiting and claimed jobs apart: the few that run are not searched among millions that wait.
    "idx_job_queue_live": "job_queue (num_nonnulls(claim_token), created_at DESC, job_id DESC)",
    "idx_job_queue_suspects": (
        "job_queue (priority DESC, due_at, created_at)"
        " WHERE claim_token IS NULL AND NOT rate_limited AND reconciliation_granted"
    ),
    # All in one direction, so that one comparison of rows bounds them.
    "idx_job_queue_recipient": (
        "job_queue (recipient, num_nonnulls(claim_token), created_at, job_id)"
    ),
    "idx_notification_jobs_recipient_unsent": (
        "notification_jobs (recipient, unsent_outcome, created_at, id)"
        " WHERE unsent_outcome IS NOT NULL"
    ),
}
# The orders of all jobs together: the listings merge the orders of the statuses instead.
_OLD = {
    "idx_job_queue_created": "job_queue (created_at DESC, job_id DESC)",
    "idx_notification_jobs_created": "notification_jobs (created_at DESC, id DESC)",
    "idx_notification_jobs_recipient_created": (
        "notification_jobs (recipient, created_at DESC, id DESC)"
    ),
}


def upgrade() -> None:
    # After the triggers were committed: what is sent from then on they enter, the rest is here.
    op.execute(
        "INSERT INTO sent_jobs (created_at, job_id, recipient)"
        " SELECT created_at, id, recipient FROM notification_jobs WHERE outcome = 'SENT'"
        " ON CONFLICT DO NOTHING"
    )
    _replace(_OLD, by=_NEW)


def downgrade() -> None:
    _replace(_NEW, by=_OLD)


def _replace(gone: dict[str, str], *, by: dict[str, str]) -> None:
    """Build, then drop, while traffic goes on.

    A build that was interrupted leaves an invalid index behind; dropping it first lets the
    migration simply run again.
    """
    with op.get_context().autocommit_block():
        # Each step waits for the transactions that were open when it began, and holds up nobody.
        op.execute("SET lock_timeout = '60s'")
        for name, columns in by.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {columns}")
        for name in gone:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute("SET lock_timeout = '3s'")
