"""TCP ports that nothing listens on."""

import socket
from collections.abc import Iterable, Iterator

from notify_queue.local.errors import LocalError

LOOPBACK = "127.0.0.1"
HIGHEST = 65535

# Both have to be free: some systems let one program take every address of a port while another
# holds just one of them.
_ADDRESSES = (LOOPBACK, "0.0.0.0")  # noqa: S104 - tried for a moment, never listened on


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` now."""
    return all(_can_bind(address, port) for address in _ADDRESSES)


def free_ports(candidates: Iterable[int]) -> Iterator[int]:
    """Yield those of ``candidates`` that are free, in order.

    Raises:
        LocalError: when they run out.
    """
    yield from filter(is_free, candidates)
    raise LocalError("No free port is left in the range that was tried.")


def _can_bind(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections that linger from an earlier run must not make its port look taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
