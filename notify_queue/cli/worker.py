"""A worker, alone or with the API in the same process."""

from notify_queue.bootstrap import Container
from notify_queue.cli.startup import require_schema, settings_or_exit, start_logging, stop
from notify_queue.cli.web import application_of
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger
from notify_queue.runtime.http_server import HttpServer, PortError
from notify_queue.runtime.worker_process import (
    Times,
    WorkerProcess,
    stop_on_signals,
)

_log = get_logger("worker")


def run(role: str) -> None:
    """Serve the port of the role, then work until a signal comes.

    ``role`` is ``worker`` (its port answers /health only) or ``all`` (its port is the API).
    """
    settings = settings_or_exit()
    start_logging(settings, role)
    # Early: a database that hangs makes the start a long one.
    stop_asked = stop_on_signals()
    container = Container(settings, role)
    require_schema(container)
    process = WorkerProcess(
        container.worker,
        stop=stop_asked,
        worker_id=settings.worker_id,
        times=Times(
            poll_interval_s=settings.worker_poll_interval_ms / 1000,
            webhook_interval_s=settings.webhook_poll_interval_ms / 1000,
            recovery_interval_s=settings.worker_recovery_interval_ms / 1000,
            shutdown_timeout_s=settings.worker_shutdown_timeout_ms / 1000,
        ),
    )
    try:
        server = HttpServer(application_of(container, role), settings.port)
    except PortError as error:
        stop(str(error), 1)
    _log.info(events.APP_STARTED, port=settings.port)
    _log.info(
        events.WORKER_STARTED,
        workerId=settings.worker_id,
        concurrency=settings.worker_concurrency,
        batchSize=settings.worker_batch_size,
        pollIntervalMs=settings.worker_poll_interval_ms,
    )
    server.stop(process.run())
