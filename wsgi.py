"""What gunicorn serves: ``gunicorn --config gunicorn.conf.py wsgi:app``."""

import notify_queue.runtime.green  # noqa: F401, I001 - patches the process before all else

from notify_queue.cli.web import application

app = application()
