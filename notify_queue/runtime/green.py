"""Makes a process cooperative. Import it first, before anything that may import ``ssl``.

The import is the act: patching later would leave modules behind that hold unpatched sockets.
"""

from gevent import monkey

monkey.patch_all()

from notify_queue.persistence import waiting  # noqa: E402 - only after the patch

waiting.install()
