"""One runner a project; the file tells who it is and what a killed one left."""

import os
import re
from pathlib import Path

import pytest

from notify_queue.local.errors import LocalError
from notify_queue.local.run_lock import RunLock

ADDRESS = "http://127.0.0.1:3000"


def test_a_second_runner_is_told_who_runs_and_where(tmp_path: Path) -> None:
    with RunLock(tmp_path / "lock") as lock:
        lock.record(ADDRESS, [])
        expected = re.escape(f"running already: process {os.getpid()}, {ADDRESS}")
        with pytest.raises(LocalError, match=expected), RunLock(tmp_path / "lock"):
            pass


def test_a_runner_that_has_not_said_anything_yet_is_seen_too(tmp_path: Path) -> None:
    with (
        RunLock(tmp_path / "lock"),
        pytest.raises(LocalError, match="process unknown"),
        RunLock(tmp_path / "lock"),
    ):
        pass


def test_the_last_record_counts(tmp_path: Path) -> None:
    with RunLock(tmp_path / "lock") as lock:
        lock.record(ADDRESS, [])
        lock.record(ADDRESS, [41, 42])
        assert lock.leftovers() == [41, 42]


def test_a_runner_that_ended_by_itself_leaves_nothing(tmp_path: Path) -> None:
    with RunLock(tmp_path / "lock") as lock:
        lock.record(ADDRESS, [41])
    with RunLock(tmp_path / "lock") as lock:
        assert lock.leftovers() == []


@pytest.mark.parametrize("text", ["", '{"pid": 1, "chil', "[]", '{"children": "all"}'])
def test_a_file_cut_short_names_no_children(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text)
    with RunLock(tmp_path / "lock") as lock:
        assert lock.leftovers() == []
