"""Serving over stdin and stdout: the messages there and nowhere else, logs on stderr, an end with the client."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from mcp.server import MCPServer

_LOOK = 1.0
"""Seconds between two looks at who the parent is."""


def serve_stdio(server: MCPServer[Any]) -> None:
    """Answers until stdin ends, the parent is gone, or SIGTERM or SIGINT comes."""
    log_to_stderr()
    parent = os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A thread waits for stdin and cannot be woken; reading leaves nothing behind that needs care.
        signal.signal(number, lambda *_: os._exit(0))
    threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()
    server.run("stdio")


def _end_with(parent: int) -> None:
    """Ends the process when its parent has ended: a pipe that somebody else holds open never says so."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(0)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Every log line goes to stderr, in one form."""
    logging.basicConfig(
        stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s", force=True
    )
