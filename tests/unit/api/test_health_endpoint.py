"""``GET /health``."""

import json

import pytest

from tests.unit.api.in_memory import InMemoryQueue


@pytest.mark.parametrize("role", ["api", "worker", "all"])
def test_health_is_ok_while_the_database_answers(queue: InMemoryQueue, role: str) -> None:
    response = queue.app(role).test_client().get("/health")

    assert response.status_code == 200
    database = {"database": {"status": "up", "responseTime": 7}}
    assert list(json.loads(response.data).items()) == [
        ("status", "ok"),
        ("info", database),
        ("error", {}),
        ("details", database),
    ]


@pytest.mark.parametrize("role", ["api", "worker", "all"])
def test_health_is_an_error_when_the_database_is_down(queue: InMemoryQueue, role: str) -> None:
    queue.up = False

    response = queue.app(role).test_client().get("/health")

    assert response.status_code == 503
    database = {"database": {"status": "down", "message": "The database does not answer"}}
    assert list(json.loads(response.data).items()) == [
        ("status", "error"),
        ("info", {}),
        ("error", database),
        ("details", database),
    ]
