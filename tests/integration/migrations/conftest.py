"""A database of the release that a module names in ``BEFORE``, and connections to it."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from notify_queue.persistence import schema
from notify_queue.persistence.engine import direct_engine, pooled_engine
from tests.support.postgres import Databases, sqlalchemy_url


@pytest.fixture
def url(databases: Databases, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database as it was before the migrations under test."""
    made = databases.empty()
    schema.upgrade(direct_engine(sqlalchemy_url(made), "before"), request.module.BEFORE)
    yield made
    databases.drop(made)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """Connections to it."""
    connected = pooled_engine(sqlalchemy_url(url), "jobs", 2)
    yield connected
    connected.dispose()
