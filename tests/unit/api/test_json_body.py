"""Strict JSON, from bytes and headers to an object."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from http import HTTPStatus
from io import BytesIO

import pytest

from notify_queue.api.content import MAX_BODY_BYTES, Readable, read_bounded
from notify_queue.api.json_body import BodyHeaders, parse_sent
from notify_queue.api.refusals import RequestRefusedError
from notify_queue.api.strict_json import MAX_DEPTH

JSON = "application/json"
BAD = HTTPStatus.BAD_REQUEST
TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
SQUEEZE: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
UNSUPPORTED = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


def read_object(stream: Readable, headers: BodyHeaders) -> dict[str, object]:
    """Read a body as a request does."""
    return parse_sent(read_bounded(stream, headers.length), headers)


def read(content: bytes, content_type: str = JSON, encoding: str = "") -> object:
    return read_object(BytesIO(content), BodyHeaders(content_type, encoding, len(content)))


def refusal(content: bytes, content_type: str = JSON, encoding: str = "") -> tuple[int, str]:
    with pytest.raises(RequestRefusedError) as caught:
        read(content, content_type, encoding)
    assert caught.value.details == []
    return caught.value.status, str(caught.value)


def padded(size: int) -> bytes:
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def test_an_object_is_read_as_it_is() -> None:
    body = b' {"text": "\\u00e9\\ud83d\\ude00", "n": [1, -2.5, true, null, {}]} '

    assert read(body) == {"text": "é😀", "n": [1, -2.5, True, None, {}]}


@pytest.mark.parametrize("content_type", ["", "text/plain", JSON, "application/json; charset=x"])
def test_an_empty_body_is_an_empty_object_whatever_its_headers_say(content_type: str) -> None:
    assert read(b"", content_type, "foo") == {}


def test_a_compressed_empty_body_is_an_empty_object() -> None:
    assert read(gzip.compress(b""), JSON, "gzip") == {}


@pytest.mark.parametrize(
    "content",
    [
        b" ",
        b"\r\n\t",
        b'{"a":1',
        b"{'a':1}",
        b'{"a":1}x',
        b'{"a":1,}',
        b'{"a":01}',
        b'{"a":"\x01"}',
        b"secret-marker",
    ],
)
def test_what_is_not_json_is_malformed_and_not_quoted(content: bytes) -> None:
    assert refusal(content) == (BAD, "Malformed JSON body")


@pytest.mark.parametrize("content", [b"null", b"[]", b'"x"', b"5", b"true", b"[{}]"])
def test_json_other_than_an_object_is_refused(content: bytes) -> None:
    assert refusal(content) == (BAD, "JSON body must be an object")


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity"])
def test_tokens_that_are_no_json_numbers_are_refused_at_any_depth(token: bytes) -> None:
    message = "JSON body must not contain NaN or Infinity"

    assert refusal(b'{"a":' + token + b"}") == (BAD, message)
    assert refusal(b'{"a":[{"b":' + token + b"}]}") == (BAD, message)


@pytest.mark.parametrize(
    "digits",
    [b"9223372036854775808", b"-9223372036854775809", b"1" * 21, b"9" * 5000, b"-" + b"9" * 60000],
)
def test_integers_beyond_64_bits_are_refused(digits: bytes) -> None:
    assert refusal(b'{"a":' + digits + b"}") == (
        BAD,
        "JSON body must not contain an integer beyond 64 bits",
    )


def test_the_smallest_and_the_largest_64_bit_integers_are_read_exactly() -> None:
    body = b'{"a":9223372036854775807,"b":-9223372036854775808}'

    assert read(body) == {"a": 2**63 - 1, "b": -(2**63)}


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1E+99999999999", b"9" * 400 + b".0"])
def test_numbers_that_overflow_are_refused(number: bytes) -> None:
    assert refusal(b'{"a":' + number + b"}") == (
        BAD,
        "JSON body must not contain a number beyond double precision",
    )


def test_a_tiny_number_is_zero() -> None:
    assert read(b'{"a":1e-99999999}') == {"a": 0.0}


@pytest.mark.parametrize(
    "content", [b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b'{"a":[{"b":1,"\\u0062":2}]}']
)
def test_a_repeated_key_is_refused_at_any_depth(content: bytes) -> None:
    assert refusal(content) == (BAD, "JSON body must not repeat a key within one object")


def test_the_deepest_nesting_allowed_is_read_and_one_level_more_is_not() -> None:
    assert read(nested(MAX_DEPTH))
    assert refusal(nested(MAX_DEPTH + 1)) == (
        BAD,
        f"JSON body must not be nested deeper than {MAX_DEPTH} levels",
    )


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        nested(500),
        nested(9_000),
    ],
)
def test_deep_nesting_is_refused_however_deep(content: bytes) -> None:
    assert refusal(content)[0] == BAD


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":"\\ud800"}',
        b'{"a":"\\udc00\\ud800"}',
        b'{"\\udfff":1}',
        b'{"a":[{"b\\ud83d":[]}]}',
        b'{"a":["x\\ude00"]}',
    ],
)
def test_unpaired_surrogates_are_refused_in_keys_and_values(content: bytes) -> None:
    assert refusal(content) == (BAD, "JSON body must not contain unpaired surrogates")


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/vnd.api+json", "json"])
def test_a_body_of_another_type_is_refused(content_type: str) -> None:
    assert refusal(b"{}", content_type) == (UNSUPPORTED, "Content-Type must be application/json")


@pytest.mark.parametrize(
    ("charset", "codec"),
    [
        ("utf-8", "utf-8"),
        ('"UTF-8"', "utf-8"),
        ("utf8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("UTF-16", "utf-16"),
        ("utf-16le", "utf-16-le"),
        ("utf-16be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
def test_unicode_charsets_are_read_with_or_without_a_mark(charset: str, codec: str) -> None:
    content = '{"a":"é"}'.encode(codec)

    assert read(content, f"Application/JSON; charset={charset}") == {"a": "é"}


def test_a_mark_in_an_encoding_of_fixed_byte_order_is_tolerated() -> None:
    content = '\ufeff{"a":1}'.encode("utf-16-le")

    assert read(content, f"{JSON}; charset=utf-16le") == {"a": 1}


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-7", "cp1252", "rot13", "utf-99"])
def test_other_charsets_are_unsupported(charset: str) -> None:
    assert refusal(b"{}", f"{JSON}; charset={charset}") == (
        UNSUPPORTED,
        f'unsupported charset "{charset.upper()}"',
    )


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (b'{"a":"\xff"}', "utf-8"),
        (b'{"a":"\xed\xa0\x80"}', "utf-8"),
        (b'{"a":"\xc0\x80"}', "utf-8"),
        (b"{\x00}", "utf-16le"),
        (b"{}", "utf-32"),
    ],
)
def test_bytes_that_are_not_in_the_charset_are_refused(content: bytes, charset: str) -> None:
    assert refusal(content, f"{JSON}; charset={charset}") == (
        BAD,
        f"Request body is not valid {charset.upper()}",
    )


def test_a_body_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert read(padded(MAX_BODY_BYTES))
    assert refusal(padded(MAX_BODY_BYTES + 1)) == (TOO_LARGE, "request entity too large")


def test_no_more_is_read_than_could_be_accepted() -> None:
    stream = BytesIO(b"x" * 1_000_000)

    with pytest.raises(RequestRefusedError, match="request entity too large"):
        read_object(stream, BodyHeaders(JSON, "", None))

    assert stream.tell() < MAX_BODY_BYTES * 1.1


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("gzip", gzip.compress(b'{"a":1}')),
        ("GZIP", gzip.compress(b'{"a":1}')),
        ("deflate", zlib.compress(b'{"a":1}')),
        ("identity", b'{"a":1}'),
    ],
)
def test_known_content_encodings_are_undone(encoding: str, content: bytes) -> None:
    assert read(content, JSON, encoding) == {"a": 1}


@pytest.mark.parametrize("encoding", ["foo", "br", "gzip, gzip"])
def test_other_content_encodings_are_unsupported(encoding: str) -> None:
    assert refusal(b"{}", JSON, encoding) == (
        UNSUPPORTED,
        f'unsupported content encoding "{encoding}"',
    )


@pytest.mark.parametrize("encoding", SQUEEZE)
def test_the_limit_holds_for_what_a_compressed_body_becomes(encoding: str) -> None:
    squeeze = SQUEEZE[encoding]

    assert read(squeeze(padded(MAX_BODY_BYTES)), JSON, encoding)
    assert refusal(squeeze(padded(MAX_BODY_BYTES + 1)), JSON, encoding)[0] == TOO_LARGE


@pytest.mark.parametrize("encoding", SQUEEZE)
def test_a_bomb_is_refused_without_being_inflated(encoding: str) -> None:
    bomb = SQUEEZE[encoding](b"0" * 20_000_000)
    tracemalloc.start()
    try:
        assert refusal(bomb, JSON, encoding)[0] == TOO_LARGE
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1_000_000


def test_a_compressed_body_that_yields_nothing_for_ever_is_too_large() -> None:
    # A zlib header, then stored blocks of no bytes, none of them the last.
    content = b"\x78\x01" + b"\x00\x00\x00\xff\xff" * 100_000

    assert refusal(content, JSON, "deflate") == (TOO_LARGE, "request entity too large")


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("gzip", b'{"a":1}'),
        ("gzip", gzip.compress(b'{"a":1}')[:-1]),
        ("gzip", gzip.compress(b'{"a":1}') + b"more"),
        ("deflate", gzip.compress(b'{"a":1}')),
    ],
)
def test_a_broken_compressed_body_is_refused(encoding: str, content: bytes) -> None:
    assert refusal(content, JSON, encoding) == (
        BAD,
        "Request body is not valid in its content encoding",
    )


def test_a_stream_that_breaks_is_the_callers_fault() -> None:
    class Broken:
        def read(self, _size: int, /) -> bytes:
            raise RuntimeError("secret-marker")

    with pytest.raises(RequestRefusedError, match="could not be read") as caught:
        read_object(Broken(), BodyHeaders(JSON, "", None))
    assert caught.value.status == BAD


@pytest.mark.parametrize("content", [b"", b"{}"])
def test_a_stream_that_ends_before_the_announced_length_is_refused(content: bytes) -> None:
    with pytest.raises(RequestRefusedError, match="could not be read") as caught:
        read_object(BytesIO(content), BodyHeaders(JSON, "", len(content) + 1))
    assert caught.value.status == BAD


def test_a_huge_announced_length_is_no_reason_to_read_it() -> None:
    with pytest.raises(RequestRefusedError, match="request entity too large"):
        read_object(BytesIO(b" " * 1_000_000), BodyHeaders(JSON, "", 10**18))
