"""How gunicorn serves the API. It reads PORT and WEB_CONCURRENCY itself as well."""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the master before all else

import signal

from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger

from notify_queue.bootstrap import Container
from notify_queue.cli.startup import require_schema, settings_or_exit, start_logging

# A bad setting ends the master here with every problem listed; a worker process that ended for it
# would be started again for ever.
_settings = settings_or_exit()


class _OurLines(Logger):
    """Gunicorn's own records, in the form of all the others."""

    def setup(self, cfg: Config) -> None:
        """Let gunicorn set up its handlers, then replace them."""
        super().setup(cfg)
        start_logging(_settings, "api")


bind = f"0.0.0.0:{_settings.port}"
workers = _settings.web_concurrency
worker_class = "notify_queue.cli.gunicorn_worker.Worker"
# A limit of connections, idle ones included: a proxy's pool or a few slow clients must not keep
# /health out. What bounds the work behind them is the connection pool.
worker_connections = 1000
# Platforms kill 30 s after SIGTERM; accepted requests take milliseconds, and a body 10 s at most.
graceful_timeout = 20
# For the gevent class this is a sign of life of the process, no deadline of a request.
timeout = 30
keepalive = 5
# The application writes the request line itself, without what callers put into URLs.
accesslog = None
logger_class = _OurLines
# Two instances on one machine would share the socket's path.
control_socket_disable = True


def on_starting(_server: Arbiter) -> None:
    """Refuse an older schema here as well, before any worker process is made."""
    container = Container(_settings, "api")
    require_schema(container)
    # A connection must not cross a fork.
    container.close()


def when_ready(server: Arbiter) -> None:
    """Let Ctrl-C drain, as SIGTERM does: gunicorn's own way cuts accepted requests off."""
    signal.signal(signal.SIGINT, lambda _number, frame: server.signal(signal.SIGTERM, frame))
