"""Signatures of webhooks, as Standard Webhooks 1.0.0 has them (docs/webhooks.md)."""

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24
_MOST_BYTES: Final = 64
# How old a webhook may be for whoever checks it, and how far ahead its sender's clock may run.
TOLERANCE_S: Final = 5 * 60
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def decode_secret(text: str) -> bytes:
    """Read a secret, ``whsec_`` and 24 to 64 bytes in base64.

    Raises:
        ValueError: it has another form.
    """
    if not text.startswith(_PREFIX):
        raise ValueError("a secret begins with whsec_")
    secret = b64decode(text.removeprefix(_PREFIX), validate=True)
    if not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise ValueError("a secret has 24 to 64 bytes")
    return secret


def sign(event_id: str, timestamp: int, body: bytes, secrets: Sequence[bytes]) -> str:
    """Sign what is sent: one signature for each secret, so that receivers can change theirs.

    ``timestamp`` is the time of the attempt, in whole seconds since 1970.
    """
    return " ".join(_signature(event_id, str(timestamp), body, secret) for secret in secrets)


def is_signed(
    headers: tuple[str, str, str], body: bytes, secrets: Sequence[bytes], now: float
) -> bool:
    """Whether one of the signatures fits one of the secrets and the time is about ``now``.

    ``headers`` are the values of ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``,
    whatever a stranger wrote there.
    """
    event_id, timestamp, signatures = headers
    if not _SECONDS.fullmatch(timestamp) or abs(now - int(timestamp)) > TOLERANCE_S:
        return False
    right = [_signature(event_id, timestamp, body, secret).encode() for secret in secrets]
    given = [signature.encode("utf-8", "replace") for signature in signatures.split(" ")]
    return any(hmac.compare_digest(one, other) for one in right for other in given)


def _signature(event_id: str, timestamp: str, body: bytes, secret: bytes) -> str:
    signed = f"{event_id}.{timestamp}.".encode("utf-8", "replace") + body
    return f"v1,{b64encode(hmac.digest(secret, signed, sha256)).decode()}"
