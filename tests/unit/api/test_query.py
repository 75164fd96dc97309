"""How query strings, and the numbers in them, are read."""

import math

import pytest

from notify_queue.api.query import parse_number, parse_query


@pytest.mark.parametrize(
    ("sent", "query"),
    [
        (b"", {}),
        (b"&&", {}),
        (b"a", {"a": ""}),
        (b"a=", {"a": ""}),
        (b"=b", {"": "b"}),
        (b"a=b=c", {"a": "b=c"}),
        (b"a=b;c=d", {"a": "b;c=d"}),
        (b"a=1&b=2&a=3&a=", {"a": ["1", "3", ""], "b": "2"}),
        (b"a=&a=", {"a": ["", ""]}),
        (b"a%5B%5D=1&a[x]=2", {"a[]": "1", "a[x]": "2"}),
        (b"a=x+y%2Bz%20", {"a": "x y+z "}),
        (b"a=%00", {"a": "\0"}),
        (b"a=%zz%", {"a": "%zz%"}),
        (b"a=%C3%A9", {"a": "é"}),
        (b"a=\xc3\xa9", {"a": "é"}),
        (b"a=%FF", {"a": "\ufffd"}),
        (b"a=\xff", {"a": "\ufffd"}),
        (b"a=%ED%A0%80", {"a": "\ufffd\ufffd\ufffd"}),
    ],
)
def test_a_query_is_read_in_one_way(sent: bytes, query: dict[str, object]) -> None:
    assert parse_query(sent) == query


def test_parameters_keep_their_order() -> None:
    assert list(parse_query(b"z=1&b=1&a=1&z=2")) == ["z", "b", "a"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("-5", -5),
        ("007", 7),
        ("5.0", 5),
        ("5.", 5),
        (".5", 0.5),
        ("1e1", 10),
        ("1E+1", 10),
        ("100e-1", 10),
        ("0x10", 16),
        ("0XfF", 255),
        ("0o17", 15),
        ("0b11", 3),
        (" 5\t\r\n\v\f\u00a0\u2028\ufeff", 5),
        ("", 0),
        (" \u3000", 0),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("1e999", math.inf),
    ],
)
def test_numbers_are_those_of_javascript(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "5x",
        "1 0",
        "1_0",
        "0x",
        "0x1_0",
        "-0x10",
        "0o8",
        "0b2",
        ".",
        "e1",
        "1e",
        "1,5",
        "--5",
        "nan",
        "NaN",
        "inf",
        "infinity",
        "INFINITY",
        "\u0663",
        "\uff15",
        "5\x85",
        "5\x1c",
        "5\0",
        "true",
        "9" * 10_000 + "x",
    ],
)
def test_anything_else_is_no_number(text: str) -> None:
    assert math.isnan(parse_number(text))
