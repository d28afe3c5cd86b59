"""Builds the parts from the settings and hands them over; the only place where they meet."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kb.config import Settings
from kb.errors import KbError
from kb.store.database import Database
from kb.store.embedded import EmbeddedServer


@dataclass(frozen=True)
class App:
    """The parts that use cases take (`kb.store.parts.Parts`)."""

    settings: Settings
    database: Database
    home: Path


def embedded_server(settings: Settings) -> EmbeddedServer:
    """The server of kb's own, below the data home; not started."""
    return EmbeddedServer(settings.home, settings.pg_bindir)


def find_database(settings: Settings) -> Database:
    """The database of the settings: the one at the URL, else the embedded server's, started if need be.

    Raises:
        DatabaseError: the URL is wrong or the embedded server cannot start.
    """
    if settings.db_url is not None:
        return Database.at(
            settings.db_url.get_secret_value().replace("postgresql+psycopg:", "postgresql:", 1)
        )
    return Database(embedded_server(settings).ensure_running())


def own_program() -> Path:
    """The installed `kb` that is running, for those who are to call it later.

    Raises:
        KbError: there is none, because kb was started in another way.
    """
    beside = Path(sys.executable).with_name("kb")
    found = str(beside) if beside.is_file() else shutil.which("kb")
    if found is None:
        raise KbError("the program `kb` is not installed", hint="install it: uv tool install .")
    return Path(found).absolute()


@dataclass(frozen=True)
class Endpoint:
    """Where an OpenAI-compatible provider is; from the environment only, never stored, never printed."""

    url: str | None
    key: str | None

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"


def embedding_endpoint() -> Endpoint:
    """KB_EMBED_URL and KB_EMBED_API_KEY."""
    return Endpoint(os.environ.get("KB_EMBED_URL") or None, os.environ.get("KB_EMBED_API_KEY") or None)


@contextmanager
def open_app(settings: Settings) -> Iterator[App]:
    """The parts over a database that is ready; an empty one is migrated first.

    Raises:
        DatabaseError: unreachable, or its schema is behind or ahead of this kb.
    """
    database = find_database(settings)
    database.ensure_ready()
    settings.home.mkdir(parents=True, exist_ok=True)
    yield App(settings, database, settings.home)
