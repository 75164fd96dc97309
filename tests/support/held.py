"""Transactions of the product held at a chosen point, so that a test can act in just that moment.

The product's own deadlines go on: what is held must be let go within its statement timeout, and
what waits for a whole table within its lock timeout.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine, text


@dataclass(frozen=True)
class Moment:
    """A kind of transaction, told by a change that only it makes, and where it is to hang."""

    name: str
    table: str
    change: str
    condition: str = "true"
    in_commit: bool = True


CLAIM_COMMIT = Moment("claim", "job_queue", "UPDATE", "OLD.claim_token IS NULL")
RECOVERY_COMMIT = Moment("recovery", "job_queue", "UPDATE", "NEW.claim_token IS NULL")
FLUSH_STATEMENT = Moment("flush_statement", "job_queue", "DELETE", in_commit=False)
FLUSH_COMMIT = Moment("flush_commit", "job_queue", "DELETE")
ACCEPTANCE_COMMIT = Moment("acceptance", "mock_provider_deliveries", "INSERT")


_MOMENTS = (CLAIM_COMMIT, RECOVERY_COMMIT, FLUSH_STATEMENT, FLUSH_COMMIT, ACCEPTANCE_COMMIT)

_FUNCTION = """
    CREATE FUNCTION pass_the_gate() RETURNS trigger LANGUAGE plpgsql
    -- Shorter than what some tests do meanwhile; the statement timeout stays in force.
    SET lock_timeout = 0
    AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext(TG_ARGV[0])); RETURN NULL; END $$
"""
_TRIGGER = """
    CREATE CONSTRAINT TRIGGER gate_{name} AFTER {change} ON {table} DEFERRABLE INITIALLY {when}
    FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION pass_the_gate('{name}')
"""


@contextmanager
def gates(engine: Engine) -> Iterator[None]:
    """Give the database a gate for every moment. They stand open until one is held.

    Leave only when the product's processes have ended: one in a transaction would hold us up.
    """
    with engine.begin() as connection:
        connection.execute(text(_FUNCTION))
        for moment in _MOMENTS:
            when = "DEFERRED" if moment.in_commit else "IMMEDIATE"
            connection.execute(text(_TRIGGER.format(when=when, **vars(moment))))
    yield
    with engine.begin() as connection:
        connection.execute(text("DROP FUNCTION pass_the_gate CASCADE"))


@contextmanager
def held(engine: Engine, moment: Moment) -> Iterator[None]:
    """Let every transaction of that kind hang; afterwards all go on. Needs ``gates``.

    The server does not look whether a client lives. So a process that is killed in a held commit
    has died with that commit on its way, and one that is killed in a statement leaves nothing.
    """
    gate = text("SELECT pg_advisory_xact_lock(hashtext(:name))")
    with engine.begin() as connection:
        # However long it takes: a test that fails says so itself.
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(gate, {"name": moment.name})
        yield


@contextmanager
def provider_hangs(engine: Engine) -> Iterator[None]:
    """Let every call to the mock provider hang before it has done anything."""
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE mock_provider_deliveries IN ACCESS EXCLUSIVE MODE"))
        yield
