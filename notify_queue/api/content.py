"""The bytes of a request body: read once, never more than the limit, and decompressed.

A body is bounded by what it becomes, not by what it says of itself: the length header may be
missing (chunked bodies) and a small compressed body may hold a huge one.
"""

import zlib
from http import HTTPStatus
from typing import Final, Protocol

from notify_queue.api.refusals import RequestRefusedError

MAX_BODY_BYTES: Final = 65_536
# Incompressible content grows a little when compressed. The room is bounded too: a compressed
# stream can go on for ever without ever yielding a byte.
_COMPRESSION_OVERHEAD_BYTES: Final = 1_024
# What zlib expects around the compressed data: a gzip header, or the zlib header that "deflate"
# means in HTTP.
_WINDOW_BITS: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Readable(Protocol):
    """A stream of bytes, as a WSGI server hands it over."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        ...


def read_bounded(stream: Readable, length: int | None) -> bytes:
    """Read a body as it was sent; what is past any accepted size stays unread.

    ``length`` is the number of bytes announced, None for a chunked body.

    Raises:
        RequestRefusedError: the stream broke before its end.
    """
    limit = MAX_BODY_BYTES + _COMPRESSION_OVERHEAD_BYTES + 1
    sent = bytearray()
    try:
        while len(sent) < limit and (chunk := stream.read(limit - len(sent))):
            sent += chunk
    except Exception as error:  # Each server has its own class for a broken body.
        raise _broken_off() from error
    # Some servers end the stream in silence when the client has gone; what came so far, nothing
    # perhaps, is not what was meant.
    if length is not None and len(sent) < min(length, limit):
        raise _broken_off()
    return bytes(sent)


def decode_content(sent: bytes, encoding: str) -> bytes:
    """Undo the content encoding of a body.

    Raises:
        RequestRefusedError: an unknown encoding, data that is not in it, or a body over the limit.
    """
    name = encoding.strip().lower() or "identity"
    if name == "identity":
        content = sent
    elif name in _WINDOW_BITS:
        content = _inflate(sent, _WINDOW_BITS[name])
    else:
        raise RequestRefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f'unsupported content encoding "{name}"'
        )
    if len(content) > MAX_BODY_BYTES:
        raise _too_large()
    return content


def _inflate(sent: bytes, window_bits: int) -> bytes:
    if len(sent) > MAX_BODY_BYTES + _COMPRESSION_OVERHEAD_BYTES:
        raise _too_large()
    stream = zlib.decompressobj(window_bits)
    try:
        content = stream.decompress(sent, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise _not_compressed() from error
    whole = stream.eof and not stream.unused_data
    if not whole and len(content) <= MAX_BODY_BYTES:
        raise _not_compressed()
    return content


def _broken_off() -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.BAD_REQUEST, "Request body could not be read")


def _too_large() -> RequestRefusedError:
    return RequestRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request entity too large")


def _not_compressed() -> RequestRefusedError:
    return RequestRefusedError(
        HTTPStatus.BAD_REQUEST, "Request body is not valid in its content encoding"
    )
