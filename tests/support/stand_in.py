"""Stands in for the product where only its being started and stopped is tested.

The tests of the development runner copy this into a project of their own, as
``notify_queue/__main__.py`` and as ``scripts/seed.py``, which has the role "seed".
STAND_IN_FAILS and STAND_IN_IGNORES_TERM name a role; STAND_IN_SEEDS is what the seed says.
"""

import http.server
import os
import signal
import sys
from types import FrameType

ROLE = sys.argv[1] if len(sys.argv) > 1 else "seed"
DEFAULT_LINE = '{"seeded": 24, "existing": 0, "statuses": {}}'


class Healthy(http.server.BaseHTTPRequestHandler):
    """Answers every GET with 200."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing of requests."""


def say(word: str) -> None:
    """One line a test can wait for."""
    sys.stdout.write(f"{ROLE} {word} {os.environ.get('WORKER_ID', '-')} {os.environ['PORT']}\n")
    sys.stdout.flush()


def end(_number: int, _frame: FrameType | None) -> None:
    """End as the product does on SIGTERM."""
    if os.environ.get("STAND_IN_IGNORES_TERM") != ROLE:
        say("ends")
        os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    if ROLE != "seed":
        say("begins")
    if os.environ.get("STAND_IN_FAILS") == ROLE:
        sys.exit(3)
    if ROLE == "seed":
        sys.stdout.write(os.environ.get("STAND_IN_SEEDS", DEFAULT_LINE) + "\n")
    elif ROLE != "migrate":
        address = ("127.0.0.1", int(os.environ["PORT"]))
        http.server.HTTPServer(address, Healthy).serve_forever()
