"""`kb serve` as a process of its own, over the database of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from tests.mcp.conftest import Indexed


def database_url(indexed: Indexed) -> str:
    """The test's database as a URL."""
    parts = conninfo_to_dict(indexed.parts.database.urls.owner)
    host, port = quote(str(parts["host"]), safe=""), parts.get("port", 5432)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={host}&port={port}"


def environment(indexed: Indexed, **more: str) -> dict[str, str]:
    """What `kb` needs to find the database of the test, and nothing of the machine's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
    return {**kept, "KB_DB_URL": database_url(indexed), "KB_HOME": str(indexed.parts.home), **more}


COMMAND = (sys.executable, "-m", "kb", "serve")


@contextmanager
def http_server(indexed: Indexed, *options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """A server on a free port of the loopback: its URL, and its process."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "127.0.0.1:0", *options],
        env=environment(indexed, **variables),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("serving "), line + process.stderr.read()
        yield line.split()[1], process
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
