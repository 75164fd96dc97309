"""Fixtures for what runs on a developer's machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.folders import folder_for_everybody


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can go into."""
    with folder_for_everybody() as folder:
        yield folder
