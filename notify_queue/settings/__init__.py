"""The configuration of one process: read once at start, checked whole, never changed.

``values.Settings`` declares every setting in one place. The checks, the example file, the table in
the documents and the listing of ``python -m notify_queue check`` all derive from it.
"""

from notify_queue.settings.declaration import LEASE_MARGIN_MS
from notify_queue.settings.documents import describe, render_env_example, render_table
from notify_queue.settings.reading import (
    EXIT_CODE,
    InvalidSettingsError,
    load,
    load_from_process,
)
from notify_queue.settings.values import Settings

__all__ = [
    "EXIT_CODE",
    "LEASE_MARGIN_MS",
    "InvalidSettingsError",
    "Settings",
    "describe",
    "load",
    "load_from_process",
    "render_env_example",
    "render_table",
]
