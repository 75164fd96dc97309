"""Ports for processes under test."""

import random

from notify_queue.local.ports import free_ports

# Below the ports that a system hands out to outgoing connections: one of those could take ours
# between the look and the start.
_RANGE = range(20000, 30000)
# Not the seeded generator: two runs with one seed would pick the same ports.
_chance = random.SystemRandom()
# A process that is still starting does not listen yet.
_given: set[int] = set()


def free_port() -> int:
    """A port that nothing listens on, and that was given to nobody before."""
    candidates = [port for port in _chance.sample(_RANGE, k=1000) if port not in _given]
    port = next(free_ports(candidates))
    _given.add(port)
    return port
