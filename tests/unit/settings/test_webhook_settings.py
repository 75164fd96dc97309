"""What signs webhooks, and that no refusal and no listing gives secrets or URLs away."""

from base64 import b64encode
from traceback import format_exception

import pytest

from notify_queue.settings import InvalidSettingsError, Settings, describe, load

DATABASE = {"DATABASE_URL": "postgresql://user:password@localhost:5432/notify_queue"}
ONE, TWO, THREE = (f"whsec_{b64encode(letter * 32).decode()}" for letter in (b"1", b"2", b"3"))
MARKER = "zqx7marker"

COUNT = "must be one secret, or two with a space between"
FORM = "must be whsec_ and 24 to 64 bytes in base64"


def settings(**variables: str) -> Settings:
    return load(DATABASE | variables)


def refusal(**variables: str) -> InvalidSettingsError:
    with pytest.raises(InvalidSettingsError) as caught:
        load(DATABASE | variables)
    return caught.value


def problem(**variables: str) -> str:
    """The one line below the headline."""
    _, line = str(refusal(**variables)).splitlines()
    return line.removeprefix("  - ")


def test_by_default_nothing_is_sent_signed_allowed_or_served() -> None:
    made = settings()
    assert made.webhook_url is None
    assert made.webhook_secret == ()
    assert (made.webhook_allow_private, made.webhook_mock_receiver) == (False, False)
    assert (made.webhook_timeout_ms, made.webhook_max_attempts) == (5000, 10)
    assert (made.webhook_poll_interval_ms, made.webhook_concurrency) == (1000, 50)


class TestSecret:
    """One secret, or two while one follows the other."""

    @pytest.mark.parametrize(
        ("text", "secrets"),
        [
            (ONE, [b"1"]),
            (f"{ONE} {TWO}", [b"1", b"2"]),
            (f"  {TWO}   {ONE} ", [b"2", b"1"]),
            (f"{ONE} {ONE}", [b"1", b"1"]),
        ],
    )
    def test_the_bytes_are_what_signs_in_the_order_given(
        self, text: str, secrets: list[bytes]
    ) -> None:
        made = settings(WEBHOOK_SECRET=text)
        assert made.webhook_secret == tuple(letter * 32 for letter in secrets)

    @pytest.mark.parametrize("size", [24, 64])
    def test_24_to_64_bytes_make_one(self, size: int) -> None:
        text = f"whsec_{b64encode(b'x' * size).decode()}"
        assert settings(WEBHOOK_SECRET=text).webhook_secret == (b"x" * size,)

    @pytest.mark.parametrize("text", [" ", " \t\n ", f"{ONE} {TWO} {THREE}", f"{ONE} {TWO} x"])
    def test_none_or_three_are_refused(self, text: str) -> None:
        assert problem(WEBHOOK_SECRET=text) == f"WEBHOOK_SECRET: {COUNT}"

    @pytest.mark.parametrize(
        "text",
        [
            *("secret", "whsec_", ONE.removeprefix("whsec_"), ONE.upper(), f"{ONE},{TWO}"),
            *(f"whsec_{b64encode(b'x' * size).decode()}" for size in (1, 23, 65, 1_000)),
            *(f"{ONE}=", ONE.rstrip("="), f"whsec_{'-_' * 20}", f"whsec_{'%' * 40}"),
            *(f"whsec_{'é' * 40}", f"{ONE}\x00", f"'{ONE}'", f"{ONE} x", f"x {ONE}"),
        ],
    )
    def test_any_other_form_is_refused(self, text: str) -> None:
        assert problem(WEBHOOK_SECRET=text) == f"WEBHOOK_SECRET: {FORM}"


@pytest.mark.parametrize("name", ["WEBHOOK_ALLOW_PRIVATE", "WEBHOOK_MOCK_RECEIVER"])
class TestFlags:
    """Two words, and no guessing."""

    @pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("", False)])
    def test_a_flag_is_yes_or_no(self, name: str, text: str, *, value: bool) -> None:
        assert getattr(settings(**{name: text}), name.lower()) is value

    @pytest.mark.parametrize(
        "text", ["True", "FALSE", "1", "0", "yes", "no", "on", " true", "true ", "true\n", "t"]
    )
    def test_no_other_word_is_read_as_one(self, name: str, text: str) -> None:
        message = "must be one of the following values: true, false"
        assert problem(**{name: text}) == f"{name}: {message}"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("WEBHOOK_TIMEOUT_MS", 1, 86_400_000),
        ("WEBHOOK_MAX_ATTEMPTS", 1, 1000),
        ("WEBHOOK_POLL_INTERVAL_MS", 10, 86_400_000),
        ("WEBHOOK_CONCURRENCY", 1, 1000),
    ],
)
def test_a_number_is_bounded(name: str, least: int, most: int) -> None:
    for bound in (least, most):
        assert getattr(settings(**{name: str(bound)}), name.lower()) == bound
    assert problem(**{name: str(least - 1)}) == f"{name}: must not be less than {least}"
    assert problem(**{name: str(most + 1)}) == f"{name}: must not be greater than {most}"


@pytest.mark.parametrize(
    "variables",
    [
        *(
            {"WEBHOOK_URL": url}
            for url in (
                *(f"ftp://{MARKER}/", f"https://user:{MARKER}@example.com/", f"http://{MARKER}:x/"),
                *(
                    f"https://{MARKER}..x/",
                    f"https://a/{MARKER}#",
                    f"https://a/{MARKER}{'a' * 2048}",
                ),
                *(
                    f"http://10.0.0.1/{MARKER}",
                    f"http://10.0.0.1/?{MARKER}",
                    f"https://a:{MARKER}/",
                ),
            )
        ),
        *(
            {"WEBHOOK_SECRET": secret}
            for secret in (
                *(MARKER, f"whsec_{MARKER}", f"{ONE} whsec_{MARKER}", f"{ONE} {TWO} {MARKER}"),
                *(f"whsec_{MARKER * 20}", f"whsec_{MARKER}\xe9"),
            )
        ),
        {"WEBHOOK_MOCK_RECEIVER": MARKER},
        {"WEBHOOK_TIMEOUT_MS": MARKER},
    ],
)
def test_no_refusal_quotes_what_it_refuses(variables: dict[str, str]) -> None:
    error = refusal(**variables)
    told = "".join(format_exception(error))
    assert MARKER not in told
    assert ONE.removeprefix("whsec_") not in told
    assert error.__context__ is None


def listed(**variables: str) -> dict[str, str]:
    """The listing of ``check``, by name."""
    lines = describe(settings(**variables)).splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example.com", "https://hooks.example.com"),
        (f"https://hooks.example.com:8443/{MARKER}", "https://hooks.example.com:8443/***"),
        (f"https://hooks.example.com/?{MARKER}=x", "https://hooks.example.com/***"),
        (f"https://hooks.example.com?{MARKER}", "https://hooks.example.com/***"),
        (f"http://[2606:4700::1111]:80/{MARKER}", "http://[2606:4700::1111]:80/***"),
    ],
)
def test_the_listing_shows_where_webhooks_go_and_no_path_and_no_query(url: str, shown: str) -> None:
    assert listed(WEBHOOK_URL=url)["WEBHOOK_URL"] == shown


def test_the_listing_shows_how_many_secrets_there_are_and_none_of_them() -> None:
    text = f"{ONE} {TWO}"
    assert listed(WEBHOOK_SECRET=text)["WEBHOOK_SECRET"] == "*** ***"
    assert listed(WEBHOOK_SECRET=ONE)["WEBHOOK_SECRET"] == "***"
    whole = describe(settings(WEBHOOK_SECRET=text))
    for secret in (b"1" * 32, b"2" * 32):
        assert b64encode(secret).decode() not in whole
        assert secret.decode() not in whole


def test_the_listing_shows_nothing_for_what_is_not_set() -> None:
    shown = listed(WEBHOOK_MOCK_RECEIVER="true")
    assert (shown["WEBHOOK_URL"], shown["WEBHOOK_SECRET"]) == ("", "")
    assert (shown["WEBHOOK_MOCK_RECEIVER"], shown["WEBHOOK_ALLOW_PRIVATE"]) == ("true", "false")
