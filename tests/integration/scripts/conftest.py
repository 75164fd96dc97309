"""The scripts, on the empty shared database."""

from pathlib import Path

import pytest

from tests.integration.scripts.runs import Scripts


@pytest.fixture
def scripts(database_url: str, tmp_path: Path) -> Scripts:
    return Scripts(database_url, tmp_path)
