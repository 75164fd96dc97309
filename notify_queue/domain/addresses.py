"""Which network addresses a URL that somebody configured may lead to."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

# Older versions of Python count some of these as global, and through the last ones a private IPv4
# address is reached under another name.
_NEVER: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2001::/32"),
    IPv6Network("2002::/16"),
    # Site-local addresses, and IPv4 addresses in a disguise, both long out of use.
    IPv6Network("fec0::/10"),
    IPv6Network("::/96"),
)


def is_public(address: str) -> bool:
    """Whether this literal address is one of the public internet.

    Raises:
        ValueError: it is no address, but a name for instance.
    """
    parsed = _unwrapped(ip_address(address.partition("%")[0]))
    if any(parsed.version == net.version and parsed in net for net in _NEVER):
        return False
    return parsed.is_global and not parsed.is_multicast


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address within an IPv6 one is judged as what it is."""
    return getattr(address, "ipv4_mapped", None) or address
