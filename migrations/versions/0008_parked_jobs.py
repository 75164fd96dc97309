"""The parked jobs of a gate in order, and the constraints on gates for the rows of before."""

from alembic import op

revision = "0008_parked_jobs"
down_revision = "0007_rate_limit"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for constraint in ("ck_job_queue_gate", "fk_job_queue_gate"):
        op.execute(f"ALTER TABLE job_queue VALIDATE CONSTRAINT {constraint}")
    _rebuild("job_queue (gate, priority DESC, due_at) WHERE gate IS NOT NULL")


def downgrade() -> None:
    _rebuild("job_queue (recipient, priority DESC, due_at) WHERE rate_limited")


def _rebuild(columns: str) -> None:
    """Whatever is interrupted here can simply be run again."""
    with op.get_context().autocommit_block():
        # Each step waits for the transactions that were open when it began, and holds up nobody.
        op.execute("SET lock_timeout = '60s'")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS idx_job_queue_parked")
        op.execute(f"CREATE INDEX CONCURRENTLY idx_job_queue_parked ON {columns}")
        op.execute("SET lock_timeout = '3s'")
