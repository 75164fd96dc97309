"""Where webhooks may go: one form of URL, and literal private addresses only with leave."""

import pytest

from notify_queue.settings import InvalidSettingsError, load

DATABASE = {"DATABASE_URL": "postgresql://user:password@localhost:5432/notify_queue"}

NO_URL = "must be a URL that begins with http:// or https://"
TOO_LONG = "must be at most 2048 characters long"
USERINFO = "must not contain a user name or a password"
NO_HOST = "must have a host: a name, punycode if need be, or an address"
NO_PORT = "must have a port from 1 to 65535, or none"
NOT_ENCODED = "must have special characters percent-encoded, and no part after a #"
DOTS = "must have no part of its path that is . or .."
PRIVATE = "WEBHOOK_URL must not name a private address unless WEBHOOK_ALLOW_PRIVATE is true"


def taken(**variables: str) -> str | None:
    return load(DATABASE | variables).webhook_url


def problem(**variables: str) -> str:
    """The one line below the headline."""
    with pytest.raises(InvalidSettingsError) as caught:
        load(DATABASE | variables)
    _, line = str(caught.value).splitlines()
    return line.removeprefix("  - ")


class TestUrl:
    """One form, taken as it is or refused with the broken rule."""

    @pytest.mark.parametrize(
        "url",
        [
            *("https://example.com", "http://example.com/", "https://example.com/a/b?c=d&e=/?"),
            *("HTTPS://EXAMPLE.COM/Hook", "https://example.com?only=query", "http://api/hook"),
            *("https://example.com.:8443/", "https://a_b.example/", "https://xn--bcher-kva.de/"),
            *("http://example.com:1/", "http://example.com:65535/", "http://example.com:080/"),
            *("https://8.8.8.8/", "https://[2606:4700::1111]/", "https://[2606:4700::1111]:8443/"),
            *("https://example.com/.a/..b/c./...?a/../b", "https://example.com?/../a"),
            *("https://example.com/%E2%98%83;x=$&'()*+,:@!~", f"https://example.com/{'a' * 2028}"),
        ],
    )
    def test_what_can_be_called_is_taken_as_it_is(self, url: str) -> None:
        assert taken(WEBHOOK_URL=url) == url

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            *[
                (url, NO_URL)
                for url in (
                    *("example.com", "localhost:3000/x", "api", "//example.com/", "/hook", "http"),
                    *("ftp://example.com/", "file:///etc/passwd", "javascript:x", "unix://x/y"),
                    *(
                        "https:/example.com",
                        "https:example.com",
                        "http:\\\\example.com",
                        "httpss://a",
                    ),
                    *(" https://example.com", "\thttps://example.com", "\ufeffhttps://example.com"),
                    *(
                        "https://[::1",
                        "https://::1]/",
                        "https://[[::1]/",
                        "https://[::1]]/",
                        "https://a[b]/",
                        "https://example.com#part",
                    ),
                    *(
                        "https://example.com/\n",
                        "https://example.com/a\nb",
                        "http\u017f://example.com",
                    ),
                )
            ],
            *[
                (url, NO_HOST)
                for url in (
                    *("https://", "https:///path", "https://?query", "https://:443/", "http://."),
                    *(
                        "https://a b/",
                        "https://example.com /",
                        "https://example..com/",
                        "http://.a/",
                    ),
                    *("https://-a.example/", "https://a-.example/", "https://bücher.example/"),
                    *("https://example.com\\.evil/", "https://a%2eb/", "https://a\x00b/"),
                    *("https://a\rb/", "https://a\r\nHost: b/", "https://a\tb/", "https://*.a/"),
                    *(
                        "https://[]/",
                        "https://[1.2.3.4]/",
                        "https://[::g]/",
                        "https://[fe80::1%25a]/",
                    ),
                    *("https://[::1%eth0]/", f"https://{'a' * 64}.example/"),
                    f"https://{'.'.join(['a' * 63] * 4)}/",
                )
            ],
            *[
                (url, USERINFO)
                for url in (
                    *("https://user@example.com/", "https://user:pass@example.com/", "https://@a/"),
                    *("https://:@example.com/", "https://example.com\\@evil.example/"),
                    "https://example.com:80@evil.example/",
                )
            ],
            *[
                (f"https://example.com:{port}/", NO_PORT)
                for port in (
                    *("", "0", "00", "65536", "99999", "080808", "-1", "+80", "1.5", "http", " 80"),
                    *("80 ", "8_0", "\u0668\u0660", "80:80", "80\r", "0x50"),
                )
            ],
            *[
                (f"https://example.com/{rest}", NOT_ENCODED)
                for rest in (
                    *("a b", " ", "a\rb", "a\r", "\t", "\x00", "\x7f", "#", "a#b", "?a#b", "<a>"),
                    *('"', "{a}", "\\", "^", "|", "`", "%", "%4", "%zz", "\xe9", "\u2028"),
                    "%0d%0a\r",
                )
            ],
            *[(f"https://example.com/{path}", DOTS) for path in (".", "..", "a/../b", "./a?b")],
            (f"https://example.com/{'a' * 2029}", TOO_LONG),
            (f"https://example.com?{'a' * 5_000}", TOO_LONG),
        ],
    )
    def test_anything_else_is_refused_by_its_first_broken_rule(
        self, url: str, message: str
    ) -> None:
        assert problem(WEBHOOK_URL=url) == f"WEBHOOK_URL: {message}"


class TestPrivateAddresses:
    """A literal address is judged at boot already."""

    @pytest.mark.parametrize(
        "host",
        [
            *("127.0.0.1", "127.255.0.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1"),
            *("169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255"),
            *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[fd00::1]", "[fe80::1]"),
            *("[::ffff:127.0.0.1]", "[::FFFF:7F00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"),
            *("[2002:7f00:1::]", "[fec0::1]", "127.1", "2130706433", "0x7f.1", "0X7F000001", "0"),
            *("0177.0.0.1", "127.0.0.1.", "localhost", "LocalHost.", "a.localhost"),
        ],
    )
    @pytest.mark.parametrize("rest", ["", ":8080/hook?x=y"])
    def test_it_needs_leave(self, host: str, rest: str) -> None:
        url = f"http://{host}{rest}"
        assert problem(WEBHOOK_URL=url) == f"WEBHOOK_URL: {PRIVATE}"
        assert problem(WEBHOOK_URL=url, WEBHOOK_ALLOW_PRIVATE="false").endswith(PRIVATE)
        assert taken(WEBHOOK_URL=url, WEBHOOK_ALLOW_PRIVATE="true") == url

    @pytest.mark.parametrize(
        "host", ["api", "a.internal", "localhost.example", "notlocalhost", "0x8.8.8.8", "134744072"]
    )
    def test_any_other_name_is_judged_when_it_is_called(self, host: str) -> None:
        assert taken(WEBHOOK_URL=f"http://{host}/") == f"http://{host}/"

    def test_without_a_url_there_is_nothing_to_allow(self) -> None:
        assert taken(WEBHOOK_ALLOW_PRIVATE="true") is None

    def test_a_broken_flag_is_told_and_not_guessed(self) -> None:
        line = problem(WEBHOOK_URL="http://127.0.0.1/", WEBHOOK_ALLOW_PRIVATE="yes")
        assert line == "WEBHOOK_ALLOW_PRIVATE: must be one of the following values: true, false"
