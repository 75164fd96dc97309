"""Folders for tests in which more than one user is at work."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def folder_for_everybody() -> Iterator[Path]:
    """A temporary folder that every user can go into, unlike ``tmp_path``."""
    folder = Path(tempfile.mkdtemp(prefix="notify-queue-")).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
