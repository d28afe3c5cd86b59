"""A fresh database on a server of its own, for one benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kb.store.database import Database
from kb.store.embedded import EmbeddedServer


@dataclass(frozen=True)
class BenchParts:
    """What use cases are given."""

    database: Database
    home: Path
    server: EmbeddedServer | None = None
    """None where the benchmark was given a server of somebody else's."""


@contextmanager
def bench_parts(scratch: Path) -> Iterator[BenchParts]:
    """Parts over an embedded server whose data is gone when the block ends."""
    home = scratch / "kb-home"
    home.mkdir(parents=True)
    server = EmbeddedServer(home, None)
    try:
        database = Database(server.ensure_running())
        database.ensure_ready()
        yield BenchParts(database, home, server)
    finally:
        server.stop()
        server.reset()


@contextmanager
def kept_parts(folder: Path) -> Iterator[BenchParts]:
    """Parts over the embedded server of a folder that is kept: stopped afterwards, its data stays."""
    home = folder / "kb-home"
    home.mkdir(parents=True, exist_ok=True)
    server = EmbeddedServer(home, None)
    try:
        database = Database(server.ensure_running())
        database.migrate()  # what an older kb has kept is brought up to date
        yield BenchParts(database, home, server)
    finally:
        server.stop()
