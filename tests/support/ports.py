"""Ports for processes under test."""

import random

from notify_queue.local.ports import free_ports

# Below the ports that a system hands out to outgoing connections: one of those could take ours
# between the look and the start.
_RANGE = range(20000, 30000)
# Not the seeded generator: two runs with one seed would pick the same ports.
_chance = random.SystemRandom()


def free_port() -> int:
    """A port that nothing listens on."""
    return next(free_ports(_chance.sample(_RANGE, k=100)))
