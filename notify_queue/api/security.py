"""Headers that tell a browser to do nothing clever with an API's answers."""

from typing import Final

from flask import Response

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none';frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Origin-Agent-Cluster": "?1",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "X-Download-Options": "noopen",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Permitted-Cross-Domain-Policies": "none",
    "X-XSS-Protection": "0",
}


def add_security_headers(response: Response) -> Response:
    """Add the headers to an answer."""
    response.headers.update(SECURITY_HEADERS)
    return response
