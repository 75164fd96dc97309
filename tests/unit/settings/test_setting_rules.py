"""Each setting: its default, its bounds and the forms it takes."""

import pytest

from notify_queue.settings import InvalidSettingsError, load

URL = "postgresql://user:password@localhost:5432/notify_queue"
DAY_MS = 86_400_000

DEFAULTS = {
    "node_env": "development",
    "app_role": "all",
    "port": 3000,
    "web_concurrency": 1,
    "log_level": "info",
    "database_pool_max": 10,
    "worker_concurrency": 100,
    "worker_batch_size": 100,
    "worker_poll_interval_ms": 1000,
    "worker_shutdown_timeout_ms": 20_000,
    "job_visibility_timeout_seconds": 60,
    "priority_aging_seconds": 300,
    "priority_aging_share": 0.1,
    "provider_timeout_ms": 10_000,
    "max_retries": 5,
    "base_retry_delay_ms": 1000,
    "max_retry_delay_ms": 60_000,
    "mock_failure_rate": 0.2,
    "mock_latency_ms": 50,
}

INTEGERS = [
    ("PORT", 1, 65_535),
    ("WEB_CONCURRENCY", 1, 128),
    ("DATABASE_POOL_MAX", 1, 1000),
    ("WORKER_CONCURRENCY", 1, 10_000),
    ("WORKER_BATCH_SIZE", 1, 10_000),
    ("WORKER_POLL_INTERVAL_MS", 10, DAY_MS),
    ("WORKER_SHUTDOWN_TIMEOUT_MS", 0, DAY_MS),
    ("JOB_VISIBILITY_TIMEOUT_SECONDS", 1, 86_400),
    ("PRIORITY_AGING_SECONDS", 1, 86_400),
    ("PROVIDER_TIMEOUT_MS", 1, DAY_MS),
    ("MAX_RETRIES", 1, 1000),
    ("BASE_RETRY_DELAY_MS", 1, DAY_MS),
    ("MAX_RETRY_DELAY_MS", 1, DAY_MS),
    ("MOCK_LATENCY_MS", 0, DAY_MS),
]
FRACTIONS = [("MOCK_FAILURE_RATE", 0, 1), ("PRIORITY_AGING_SHARE", 0, 0.5)]
WORDS = [
    ("NODE_ENV", ["development", "production", "test"]),
    ("APP_ROLE", ["api", "worker", "all"]),
    ("LOG_LEVEL", ["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
]
LOOSE = {
    # Wide open, so that a bound is tested alone and not a rule over several settings.
    "JOB_VISIBILITY_TIMEOUT_SECONDS": "86400",
    "MAX_RETRY_DELAY_MS": str(DAY_MS),
    "BASE_RETRY_DELAY_MS": "1",
    "MOCK_LATENCY_MS": "0",
}


def problems(**variables: str) -> list[str]:
    """The lines below the headline, or none when the settings are fine."""
    try:
        load({"DATABASE_URL": URL} | LOOSE | variables)
    except InvalidSettingsError as error:
        headline, *lines = str(error).splitlines()
        assert headline == "Invalid environment configuration:"
        return lines
    return []


@pytest.mark.parametrize(("attribute", "expected"), DEFAULTS.items())
def test_a_setting_has_its_default(attribute: str, expected: object) -> None:
    assert getattr(load({"DATABASE_URL": URL}), attribute) == expected


def test_the_direct_url_defaults_to_the_database_url() -> None:
    assert load({"DATABASE_URL": URL}).database_direct_url == URL.replace(":", "+psycopg2:", 1)


def test_the_direct_url_can_be_another() -> None:
    direct = "postgres://user@direct/notify_queue"
    settings = load({"DATABASE_URL": URL, "DATABASE_DIRECT_URL": direct})
    assert settings.database_direct_url == "postgresql+psycopg2://user@direct/notify_queue"
    assert "direct" not in settings.database_url


def test_each_process_gets_a_worker_id_of_its_own() -> None:
    first, second = (load({"DATABASE_URL": URL}).worker_id for _ in range(2))
    assert len(first) == 36
    assert first != second


@pytest.mark.parametrize(("name", "least", "most"), INTEGERS)
def test_an_integer_is_bounded(name: str, least: int, most: int) -> None:
    shared = {"PROVIDER_TIMEOUT_MS", "JOB_VISIBILITY_TIMEOUT_SECONDS", "MOCK_LATENCY_MS"}
    shared |= {"BASE_RETRY_DELAY_MS", "MAX_RETRY_DELAY_MS"}
    for bound in (least, most):
        lines = problems(**{name: str(bound)})
        assert not [line for line in lines if "less than" in line or "greater than" in line]
        assert not lines or name in shared
    assert f"  - {name}: must not be less than {least}" in problems(**{name: str(least - 1)})
    assert f"  - {name}: must not be greater than {most}" in problems(**{name: str(most + 1)})


@pytest.mark.parametrize(("name", "least", "most"), FRACTIONS)
def test_a_share_is_bounded(name: str, least: float, most: float) -> None:
    assert problems(**{name: str(least)}) == []
    assert problems(**{name: str(most)}) == []
    assert problems(**{name: "-0.01"}) == [f"  - {name}: must not be less than {least}"]
    assert problems(**{name: f"{most}1" if "." in str(most) else "1.0001"}) == [
        f"  - {name}: must not be greater than {most}"
    ]


@pytest.mark.parametrize("text", ["5", " 5", "5 ", "  5  ", "05"])
def test_a_plain_integer_is_read_with_spaces_around_it(text: str) -> None:
    assert load({"DATABASE_URL": URL, "MAX_RETRIES": text}).max_retries == 5


@pytest.mark.parametrize(
    "text",
    [
        *("+5", "5.0", "5.5", "1_000", "0x10", "1e3", "abc", "Infinity", "NaN", "--5", "5 5"),
        *("-", " ", "5\n", "\t5", "5,0", "true", "\u0665", "\uff15", "5\x00", "\udcff"),
    ],
)
def test_any_other_form_is_no_integer(text: str) -> None:
    assert problems(MAX_RETRIES=text) == ["  - MAX_RETRIES: must be an integer number"]


def test_a_number_of_five_thousand_digits_is_out_of_bounds() -> None:
    assert problems(PORT="9" * 5000) == ["  - PORT: must not be greater than 65535"]
    assert problems(PORT="-" + "9" * 5000) == ["  - PORT: must not be less than 1"]


@pytest.mark.parametrize(("text", "rate"), [("0", 0), ("0.25", 0.25), (" 1 ", 1), ("1.0", 1)])
def test_a_plain_decimal_is_read(text: str, rate: float) -> None:
    assert load({"DATABASE_URL": URL, "MOCK_FAILURE_RATE": text}).mock_failure_rate == rate


@pytest.mark.parametrize(
    "text", [".5", "5.", "1e-1", "+0.1", "0,5", "nan", "inf", "1_0", "half", " ", "\u0660.\u0665"]
)
def test_any_other_form_is_no_decimal(text: str) -> None:
    assert problems(MOCK_FAILURE_RATE=text) == ["  - MOCK_FAILURE_RATE: must be a decimal number"]


@pytest.mark.parametrize(("name", "words"), WORDS)
def test_a_word_is_one_of_its_list(name: str, words: list[str]) -> None:
    for word in words:
        assert problems(**{name: word}) == []
    listed = f"  - {name}: must be one of the following values: {', '.join(words)}"
    for other in (words[0].upper(), f" {words[0]}", "other"):
        assert problems(**{name: other}) == [listed]


def test_a_worker_id_fits_its_column() -> None:
    assert load({"DATABASE_URL": URL, "WORKER_ID": "w" * 128}).worker_id == "w" * 128
    assert problems(WORKER_ID="w" * 129) == ["  - WORKER_ID: must be at most 128 characters long"]


@pytest.mark.parametrize("text", ["wörker", "a\nb", "a\x00b", "\udcff"])
def test_a_worker_id_is_printable_ascii(text: str) -> None:
    assert problems(WORKER_ID=text) == [
        "  - WORKER_ID: must contain only printable ASCII characters"
    ]


def test_every_setting_is_covered_here() -> None:
    tested = {name for name, *_ in [*INTEGERS, *FRACTIONS, *WORDS]}
    assert tested == {name.upper() for name in DEFAULTS}
