"""What gunicorn serves; ``python -m notify_queue api`` starts it with ``gunicorn.conf.py``."""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from notify_queue.cli.web import application

app = application()
