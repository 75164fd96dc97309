"""Which network addresses a URL that somebody configured may lead to."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

# All that has been given to anybody (RFC 4291, section 2.4). Outside of it are, besides what is
# private, ways to reach an IPv4 address under another name.
_UNICAST: Final = IPv6Network("2000::/3")
# Older versions of Python count some of these as global. Teredo and 6to4 lead to IPv4 addresses.
_NEVER: Final = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("2001::/32"),
    IPv6Network("2002::/16"),
    IPv6Network("3fff::/20"),
)


def is_public(address: str) -> bool:
    """Whether this literal address is one of the public internet.

    Raises:
        ValueError: it is no address, but a name for instance.
    """
    parsed = _unwrapped(ip_address(address.partition("%")[0]))
    if parsed.version == _UNICAST.version and parsed not in _UNICAST:
        return False
    if any(parsed.version == net.version and parsed in net for net in _NEVER):
        return False
    return parsed.is_global and not parsed.is_multicast


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address within an IPv6 one is judged as what it is."""
    return getattr(address, "ipv4_mapped", None) or address
