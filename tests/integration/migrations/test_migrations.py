"""The migrations: numbered, reversible, one lock, and what the models say."""

import re
import threading

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from notify_queue.persistence import schema
from notify_queue.persistence.engine import direct_engine
from notify_queue.persistence.models import Base, JobOverview
from tests.support.postgres import Databases, sqlalchemy_url

FILES = sorted((schema.MIGRATIONS / "versions").glob("*.py"))


def test_files_are_numbered_without_gaps_and_named_after_their_revision() -> None:
    assert [file.name[:4] for file in FILES] == [f"{n:04}" for n in range(1, len(FILES) + 1)]
    for file in FILES:
        assert re.search(rf'^revision = "{file.stem}"$', file.read_text(), re.MULTILINE)


def test_the_code_requires_the_newest() -> None:
    assert FILES[-1].stem == schema.REQUIRED_VERSION


def test_up_down_and_up_again_ends_where_it_began(databases: Databases) -> None:
    url = databases.empty()
    engine = direct_engine(sqlalchemy_url(url), "migrations")
    schema.upgrade(engine)
    before = _catalog(url)
    with engine.connect() as connection:
        command.downgrade(schema._config(schema._transactional(connection)), "base")
    assert {name for _, name in _catalog(url)} == {"alembic_version", "alembic_version_pkc"}
    assert schema.upgrade(engine) == schema.REQUIRED_VERSION
    assert _catalog(url) == before
    databases.drop(url)


def test_models_and_migrations_agree(databases: Databases) -> None:
    url = databases.clone()
    with direct_engine(sqlalchemy_url(url), "drift").connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                # Indexes and constraints live in the migrations alone.
                "include_object": lambda _o, _n, kind, _r, _c: kind in {"table", "column"},
            },
        )
        assert compare_metadata(context, Base.metadata) == []
        columns = {column["name"] for column in inspect(connection).get_columns("job_overview")}
    assert {column.name for column in JobOverview.__table__.columns} <= columns
    databases.drop(url)


def test_runs_that_start_together_make_one_schema(databases: Databases) -> None:
    url = databases.empty()
    reached: list[str | None] = []

    def migrate() -> None:
        reached.append(schema.upgrade(direct_engine(sqlalchemy_url(url), "together")))

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert reached == [schema.REQUIRED_VERSION] * 4
    databases.drop(url)


@pytest.mark.parametrize("version", ["nothing", "0001_notification_jobs"])
def test_an_older_schema_is_refused_with_the_command_that_mends_it(
    databases: Databases, version: str
) -> None:
    url = databases.empty()
    engine = direct_engine(sqlalchemy_url(url), "older")
    if version != "nothing":
        schema.upgrade(engine, version)
    with pytest.raises(schema.OutdatedSchemaError, match="python -m notify_queue migrate"):
        schema.require_current(engine)
    schema.upgrade(engine)
    schema.require_current(engine)
    databases.drop(url)


def test_a_newer_schema_is_accepted_as_in_the_middle_of_a_deploy(databases: Databases) -> None:
    url = databases.clone()
    engine = direct_engine(sqlalchemy_url(url), "newer")
    with engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    schema.require_current(engine)
    databases.drop(url)


def _catalog(url: str) -> set[tuple[str, str]]:
    with direct_engine(sqlalchemy_url(url), "catalog").connect() as connection:
        found = connection.execute(
            text(
                "SELECT relkind::text, relname FROM pg_class"
                " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'v')"
            )
        )
        return {(row.relkind, row.relname) for row in found}
