"""Settings as a whole: everything wrong is told at once, and no value is ever told."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from traceback import format_exception

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify_queue.settings import (
    EXIT_CODE,
    LEASE_MARGIN_MS,
    InvalidSettingsError,
    load,
    load_from_process,
)
from notify_queue.settings.values import declarations

URL = "postgresql://user:password@localhost:5432/notify_queue"
MARKER = "zqx7marker"


def refusal(environ: dict[str, str]) -> InvalidSettingsError:
    with pytest.raises(InvalidSettingsError) as caught:
        load(environ)
    return caught.value


def answer(environ: dict[str, str]) -> str:
    """What is said of an environment, which is nothing when all is well."""
    try:
        load(environ)
    except InvalidSettingsError as error:
        return str(error)
    return ""


def test_every_problem_of_every_setting_and_every_rule_is_told_at_once() -> None:
    environ = {
        "NODE_ENV": "staging",
        "PORT": "0",
        "WORKER_ID": "w" * 129,
        "PROVIDER_TIMEOUT_MS": "60000",
        "BASE_RETRY_DELAY_MS": "60001",
        "MOCK_LATENCY_MS": "60000",
        "MOCK_FAILURE_RATE": "2",
    }
    assert str(refusal(environ)).splitlines() == [
        "Invalid environment configuration:",
        "  - NODE_ENV: must be one of the following values: development, production, test",
        "  - PORT: must not be less than 1",
        "  - DATABASE_URL: is required",
        "  - WORKER_ID: must be at most 128 characters long",
        (
            "  - PROVIDER_TIMEOUT_MS: PROVIDER_TIMEOUT_MS must be shorter than"
            " JOB_VISIBILITY_TIMEOUT_SECONDS by more than 2000 ms, the time to record an outcome"
        ),
        "  - BASE_RETRY_DELAY_MS: BASE_RETRY_DELAY_MS must not exceed MAX_RETRY_DELAY_MS",
        "  - MOCK_FAILURE_RATE: must not be greater than 1",
        "  - MOCK_LATENCY_MS: MOCK_LATENCY_MS must be shorter than PROVIDER_TIMEOUT_MS",
    ]


@pytest.mark.parametrize(
    ("name", "fine", "broken"),
    [
        ("BASE_RETRY_DELAY_MS", {"BASE_RETRY_DELAY_MS": "60000"}, {"BASE_RETRY_DELAY_MS": "60001"}),
        ("BASE_RETRY_DELAY_MS", {"MAX_RETRY_DELAY_MS": "1000"}, {"MAX_RETRY_DELAY_MS": "999"}),
        (
            "PROVIDER_TIMEOUT_MS",
            {"PROVIDER_TIMEOUT_MS": str(60_000 - LEASE_MARGIN_MS - 1)},
            {"PROVIDER_TIMEOUT_MS": str(60_000 - LEASE_MARGIN_MS)},
        ),
        (
            "PROVIDER_TIMEOUT_MS",
            {"JOB_VISIBILITY_TIMEOUT_SECONDS": "13"},
            {"JOB_VISIBILITY_TIMEOUT_SECONDS": "12"},
        ),
        ("MOCK_LATENCY_MS", {"MOCK_LATENCY_MS": "9999"}, {"MOCK_LATENCY_MS": "10000"}),
        ("MOCK_LATENCY_MS", {"PROVIDER_TIMEOUT_MS": "51"}, {"PROVIDER_TIMEOUT_MS": "50"}),
    ],
)
def test_a_rule_over_two_settings_holds_up_to_its_edge(
    name: str, fine: dict[str, str], broken: dict[str, str]
) -> None:
    load({"DATABASE_URL": URL} | fine)
    lines = str(refusal({"DATABASE_URL": URL} | broken)).splitlines()
    assert [line.partition(": ")[0] for line in lines[1:]] == [f"  - {name}"]


def test_a_rule_is_not_applied_to_a_setting_that_is_broken_itself() -> None:
    text = str(refusal({"DATABASE_URL": URL, "PROVIDER_TIMEOUT_MS": "ten"}))
    assert text.splitlines()[1:] == ["  - PROVIDER_TIMEOUT_MS: must be an integer number"]


def test_an_empty_variable_counts_as_unset() -> None:
    environ = dict.fromkeys(declarations(), "") | {"DATABASE_URL": URL}
    assert load(environ).port == 3000
    assert str(refusal({"DATABASE_URL": ""})).endswith("  - DATABASE_URL: is required")


def test_unknown_variables_are_ignored() -> None:
    assert load({"DATABASE_URL": URL, "PATH": "/bin", "port": "1"}).port == 3000


def test_settings_never_change_and_never_print_themselves() -> None:
    settings = load({"DATABASE_URL": URL})
    with pytest.raises(FrozenInstanceError):
        settings.port = 1  # type: ignore[misc]  # the point of the test
    assert "password" not in repr(settings)


@pytest.mark.parametrize("name", declarations())
def test_a_refused_value_is_in_no_message_and_no_traceback(name: str) -> None:
    value = f"{MARKER}\n" + "w" * 200
    error = refusal({"DATABASE_URL": URL} | {name: value})
    assert f"  - {name}: must " in str(error)
    assert MARKER not in "".join(format_exception(error))
    assert error.__context__ is None


@given(st.dictionaries(st.sampled_from(list(declarations())), st.text(max_size=300)))
def test_any_text_is_read_or_refused_and_nothing_else(environ: dict[str, str]) -> None:
    marked = {name: f"{MARKER}{value}" for name, value in environ.items()}
    for variables in (environ, marked):
        assert MARKER not in answer({"DATABASE_URL": URL} | variables)


def test_the_exit_code_says_configuration() -> None:
    assert EXIT_CODE == 78


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without a setting of ours."""
    monkeypatch.chdir(tmp_path)
    for name in declarations():
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_file_in_the_working_directory_is_read(folder: Path) -> None:
    lines = [f"DATABASE_URL='{URL}'", "# a comment", "export PORT=4000 # here", "LOG_LEVEL"]
    (folder / ".env").write_text("\n".join(lines))
    settings = load_from_process()
    assert (settings.port, settings.log_level) == (4000, "info")


def test_the_environment_wins_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text(f"DATABASE_URL={URL}\nPORT=4000\nMAX_RETRIES=7\n")
    monkeypatch.setenv("PORT", "5000")
    monkeypatch.setenv("MAX_RETRIES", "")
    settings = load_from_process()
    assert (settings.port, settings.max_retries) == (5000, 5)


def test_a_dollar_in_the_file_is_a_dollar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "expanded")
    (folder / ".env").write_text("DATABASE_URL=postgres://u:${OTHER}@h/db\n")
    assert load_from_process().database_url == "postgresql+psycopg2://u:${OTHER}@h/db"


def test_no_file_is_no_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)
    assert load_from_process().port == 3000


def test_a_file_that_is_not_text_is_a_setting_problem(folder: Path) -> None:
    (folder / ".env").write_bytes(f"DATABASE_URL={MARKER}".encode() + b"\xff\n")
    with pytest.raises(InvalidSettingsError, match="UTF-8") as caught:
        load_from_process()
    assert MARKER not in "".join(format_exception(caught.value))
    assert caught.value.__context__ is None
