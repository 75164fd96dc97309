"""From the bytes and headers of a request to the JSON object that it carries."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from werkzeug.http import parse_options_header

from notify_queue.api.content import decode_content
from notify_queue.api.refusals import RequestRefusedError
from notify_queue.api.strict_json import parse_object

_MEDIA_TYPE: Final = "application/json"
_BYTE_ORDER_MARK: Final = "\ufeff"
# The Unicode encodings that refuse what is not valid in them; UTF-7 is not among these.
_CODECS: Final = frozenset(
    {"utf-8", "utf8", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le", "utf-32be"}
)


@dataclass(frozen=True, slots=True)
class BodyHeaders:
    """What the headers of a request say of its body; ``length`` in bytes, None if chunked."""

    content_type: str
    content_encoding: str
    length: int | None


def parse_sent(sent: bytes, headers: BodyHeaders) -> dict[str, Any]:
    """Parse the bytes of a body. An empty body is an empty object, whatever its type.

    Raises:
        RequestRefusedError: 400, 413 or 415, for a body that is not one strict JSON object.
    """
    if not sent:
        return {}
    codec = _codec(headers.content_type)
    content = decode_content(sent, headers.content_encoding)
    return parse_object(_text(content, codec)) if content else {}


def _codec(content_type: str) -> str:
    media_type, parameters = parse_options_header(content_type)
    if media_type.lower() != _MEDIA_TYPE:
        raise RequestRefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be {_MEDIA_TYPE}"
        )
    charset = parameters.get("charset", "utf-8")
    if charset.lower() not in _CODECS:
        raise RequestRefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f'unsupported charset "{charset.upper()}"'
        )
    return charset.lower()


def _text(content: bytes, codec: str) -> str:
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, f"Request body is not valid {codec.upper()}"
        ) from error
    return text.removeprefix(_BYTE_ORDER_MARK)
