"""The API: under gunicorn, as the Procfile starts it."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from flask import Flask

from notify_queue.api.app import UseCases, create_app
from notify_queue.api.blueprints.mock_webhooks import MockReceiverUseCases
from notify_queue.api.blueprints.notifications import NotificationUseCases
from notify_queue.bootstrap import Container
from notify_queue.cli.startup import settings_or_exit, start_logging
from notify_queue.observability import events
from notify_queue.observability.logs import get_logger

_ROOT = Path(__file__).parents[2]
_log = get_logger("web")


def run() -> NoReturn:
    """Become gunicorn, so that signals reach it and not a parent of it."""
    settings = settings_or_exit()
    command = [sys.executable, "-m", "gunicorn", "--config", str(_ROOT / "gunicorn.conf.py")]
    os.chdir(_ROOT)
    # Gunicorn reads this one too, and takes neither an empty value nor spaces around it.
    os.environ["WEB_CONCURRENCY"] = str(settings.web_concurrency)
    os.execv(sys.executable, [*command, "wsgi:app"])  # noqa: S606 - no shell is wanted


def application() -> Flask:
    """Build the WSGI application of one gunicorn worker process; the master has checked all."""
    settings = settings_or_exit()
    start_logging(settings, "api")
    application = application_of(Container(settings, "api"), "api")
    _log.info(events.APP_STARTED, port=settings.port)
    _log.info(events.WORKER_DISABLED, reason="this process serves the API only")
    return application


def application_of(container: Container, role: str) -> Flask:
    """Build the application that a process of ``role`` serves."""
    notifications = NotificationUseCases(
        schedule=container.schedule,
        read=container.read,
        list_page=container.list_page,
        cancel=container.cancel,
        redrive_one=container.redrive_one,
        redrive_many=container.redrive_many,
    )
    mock = container.mock_receiver
    mock_receiver = None if mock is None else MockReceiverUseCases(mock.verify, mock.count)
    return create_app(UseCases(notifications, container.health, mock_receiver), role)
