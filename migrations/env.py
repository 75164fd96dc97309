"""Runs the migrations on the connection that ``notify_queue.persistence.schema`` hands over.

Alembic takes no lock of its own; the caller holds the advisory lock that makes two runs queue up.
"""

from alembic import context

connection = context.config.attributes["connection"]

context.configure(
    connection=connection,
    # Each migration commits alone: a failure leaves the schema at the last one that worked.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
