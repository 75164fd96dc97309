"""Does the database answer?"""

import time
from dataclasses import dataclass
from typing import Final

import gevent

from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory

# Platforms give a probe two or three seconds; the answer "down" must arrive before that.
DEADLINE_S: Final = 1.5

_log = get_logger("health")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the database answered, and in how many ms."""

    up: bool
    response_time_ms: int


@dataclass(frozen=True, slots=True)
class CheckHealth:
    """One trivial statement on the process's own pool, as the work itself would run it."""

    unit_of_work: UnitOfWorkFactory

    def __call__(self) -> Health:
        """Never raises. The deadline covers the wait for a connection, connecting and the query."""
        began = time.monotonic()
        try:
            # A frozen server keeps no deadline of its own, so this one is ours.
            with gevent.Timeout(DEADLINE_S), self.unit_of_work() as unit:
                unit.reading.ping()
        except (Exception, gevent.Timeout) as error:  # noqa: BLE001 - whatever it is, it is down
            _log.warn(events.HEALTH_DOWN, error=describe_error(error))
            up = False
        else:
            up = True
        return Health(up, round((time.monotonic() - began) * 1000))
