"""What the runner takes from the environment and what it shows of it."""

from pathlib import Path

import pytest

from notify_queue.local.errors import LocalError
from notify_queue.local.settings import (
    asked_port,
    child_environment,
    read_given,
)


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=debug\nWORKER_BATCH_SIZE=7\n")
    monkeypatch.setenv("LOG_LEVEL", "warn")
    given = read_given(tmp_path)
    assert (given["LOG_LEVEL"], given["WORKER_BATCH_SIZE"]) == ("warn", "7")


def test_empty_counts_as_unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PORT=\n")
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.delenv("PORT", raising=False)
    given = read_given(tmp_path)
    assert "DATABASE_URL" not in given
    assert "PORT" not in given


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [(None, {}, None), (None, {"PORT": "4000"}, 4000), (5000, {"PORT": "4000"}, 5000)],
)
def test_the_option_wins_over_the_port_that_is_set(
    option: int | None, given: dict[str, str], expected: int | None
) -> None:
    assert asked_port(option, given) == expected


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "3_000"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match="from 1 to 65535"):
        asked_port(None, {"PORT": text})


API = "http://127.0.0.1:3000"


def test_webhooks_go_to_the_mock_receiver_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    made = child_environment({}, "postgresql://x/y", API, 3001)
    assert made["WEBHOOK_URL"] == "http://127.0.0.1:3000/webhooks/mock"
    assert (made["WEBHOOK_ALLOW_PRIVATE"], made["WEBHOOK_MOCK_RECEIVER"]) == ("true", "true")


def test_webhooks_go_elsewhere_when_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"WEBHOOK_URL": "https://example.com/x", "WEBHOOK_ALLOW_PRIVATE": "false"}
    made = child_environment(given, "postgresql://x/y", API, 3001)
    assert (made["WEBHOOK_URL"], made["WEBHOOK_ALLOW_PRIVATE"]) == (
        "https://example.com/x",
        "false",
    )


def test_a_format_that_was_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_ENV", raising=False)
    assert child_environment({}, "postgresql://x/y", API, 3000)["NODE_ENV"] == "development"
    given = {"NODE_ENV": "production"}
    assert child_environment(given, "postgresql://x/y", API, 3000)["NODE_ENV"] == "production"


def test_only_workers_get_a_name_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKER_ID", raising=False)
    assert "WORKER_ID" not in child_environment({}, "postgresql://x/y", API, 3000)
    named = child_environment({}, "postgresql://x/y", API, 3001, "worker-1")
    assert (named["WORKER_ID"], named["PORT"]) == ("worker-1", "3001")


def test_the_file_is_read_as_the_product_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgresql://u:a${b}c@h/d\nLOG_LEVEL=debug\n")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("LOG_LEVEL", "")
    given = read_given(tmp_path)
    assert given["DATABASE_URL"] == "postgresql://u:a${b}c@h/d"
    assert "LOG_LEVEL" not in given


def test_a_file_that_is_not_text_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"LOG_LEVEL=\xff\n")
    with pytest.raises(LocalError, match="not valid UTF-8"):
        read_given(tmp_path)
