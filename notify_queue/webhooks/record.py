"""Record what attempts came to, those that end together in one statement."""

import random
from collections.abc import Callable, Sequence
from typing import Final

import gevent

from notify_queue.delivery.coalesce import Coalesced
from notify_queue.delivery.lease import Lease
from notify_queue.domain.webhook_event import GivenUp, Posted, Received, TryAgain
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.observability.redaction import describe_error
from notify_queue.persistence.unit_of_work import UnitOfWorkFactory, refuses_a_row

# Between two tries to record a result: an outage is not met by a busy loop.
_AGAIN_S: Final = 0.5

_log = get_logger("webhooks.record")


class RecordPosted:
    """The step. A result is kept and tried again while it may count.

    A failure counts as long as its lease lives; then the event is somebody else's. That the
    receiver has the event counts whenever it is written, so it is kept until then: otherwise the
    event would be sent again, or given up if that was its last attempt. Only a result that the
    database refuses is not kept any longer.
    """

    def __init__(self, unit_of_work: UnitOfWorkFactory) -> None:
        """Write nothing yet."""
        self._unit_of_work = unit_of_work
        self._write = Coalesced(self._write_all)

    def __call__(self, posted: Posted, lease: Lease, *, waits: Callable[[], None]) -> None:
        """Return when the result is written, or when that is no use any more.

        ``waits`` is called before every further try: this may take long.
        """
        failed, timeless = False, isinstance(posted.verdict, Received)
        while True:
            try:
                written = self._write(posted)
            except Exception as error:  # noqa: BLE001 - the database may be away
                written, timeless = None, timeless and not refuses_a_row(error)
                if not failed:
                    _report_failure(posted, error)
                failed = True
            if written is not None or (lease.over and not timeless):
                break
            waits()
            gevent.sleep(_AGAIN_S * random.uniform(0.5, 1))  # noqa: S311 - no secret hangs on it
        _report(posted, written=bool(written))

    def _write_all(self, posted: Sequence[Posted]) -> list[bool | None]:
        """Whether each was written; None where somebody holds the row at the moment."""
        with self._unit_of_work() as unit:
            written = unit.webhook_results.record(posted)
            unit.commit()
        return written


def _report(posted: Posted, *, written: bool) -> None:
    fields = _ids(posted)
    match posted.verdict:
        case Received():
            pass
        case TryAgain(delay_ms, error):
            fields |= {"error": error, "retryInMs": delay_ms}
        case GivenUp(error):
            fields |= {"error": error, "gaveUp": True}
    if not written:
        # It had been taken over meanwhile, or could not be written while its lease lived, or the
        # receiver had it from an earlier attempt.
        _log.info(events.WEBHOOK_CLAIM_LOST, **fields)
    elif isinstance(posted.verdict, TryAgain):
        _log.warn(events.WEBHOOK_FAILED, **fields)
    elif isinstance(posted.verdict, GivenUp):
        _log.error(events.WEBHOOK_FAILED, **fields)


def _report_failure(posted: Posted, error: Exception) -> None:
    """Once for each event, however long the database is away."""
    _log.error(
        events.WEBHOOK_RECORD_FAILED,
        **_ids(posted),
        delivered=isinstance(posted.verdict, Received),
        error=describe_error(error),
    )


def _ids(posted: Posted) -> dict[str, object]:
    return {
        "eventId": str(posted.dispatch.event.event_id),
        "jobId": str(posted.dispatch.event.job_id),
        "dispatchAttempt": posted.dispatch.attempt,
    }
