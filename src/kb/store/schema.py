"""The revisions that ship with kb, and how a database's schema relates to them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

import kb
from kb.errors import DatabaseError

MINIMUM_SERVER = 15
MINIMUM_PGVECTOR = (0, 8)


class Relation(StrEnum):
    """How the schema that was found relates to the one this kb was made for."""

    EMPTY = "empty"
    CURRENT = "current"
    BEHIND = "behind"
    AHEAD = "ahead"
    FOREIGN = "foreign"
    """The database holds tables that are not kb's, and none of kb's."""


class SchemaState(NamedTuple):
    """What was found in a database."""

    relation: Relation
    found: str | None
    """Revision id; None where kb's tables are absent."""
    expected: str


def migrations_folder() -> Path:
    """The folder of the revisions: inside the installed package, else beside `src` in a checkout."""
    package = Path(kb.__file__).resolve().parent
    for folder in (package / "_migrations", package.parent.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise DatabaseError("the migrations are missing from this installation of kb", hint="Install kb again.")


def revisions() -> tuple[str, ...]:
    """Ids of the revisions in their order: the numbers that their file names begin with."""
    return tuple(
        sorted(file.name.partition("_")[0] for file in (migrations_folder() / "versions").glob("0*.py"))
    )


_INSPECT = """
SELECT to_regclass('public.kb_schema_version') IS NOT NULL,
    EXISTS (
        SELECT FROM pg_catalog.pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    )
"""


def inspect(connection: psycopg.Connection[Any]) -> SchemaState:
    """How the schema of the connected database relates to the revisions of this kb."""
    known = revisions()
    expected = known[-1]
    row = connection.execute(_INSPECT).fetchone()
    versioned, occupied = row if row is not None else (False, False)
    if versioned:
        found = connection.execute("SELECT version_num FROM public.kb_schema_version").fetchone()
        if found is not None:
            return SchemaState(_relation(found[0], known), found[0], expected)
        return SchemaState(Relation.EMPTY, None, expected)
    return SchemaState(Relation.FOREIGN if occupied else Relation.EMPTY, None, expected)


def _relation(found: str, known: tuple[str, ...]) -> Relation:
    if found == known[-1]:
        return Relation.CURRENT
    return Relation.BEHIND if found in known else Relation.AHEAD


_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
    (SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector')
"""


def require_server(connection: psycopg.Connection[Any]) -> None:
    """Returns if the server can carry kb's schema.

    Raises:
        DatabaseError: PostgreSQL is older than 15, or pgvector is absent or older than 0.8.
    """
    row = connection.execute(_SERVER).fetchone()
    number, version, pgvector = row if row is not None else (0, "?", None)
    need = "kb needs PostgreSQL 15 or newer with pgvector 0.8 or newer"
    if number < MINIMUM_SERVER * 10_000:
        raise DatabaseError(f"the server is PostgreSQL {version}; {need}")
    if pgvector is None:
        raise DatabaseError(
            f"the server has no pgvector; {need}", hint="Install the extension on the server."
        )
    if tuple(int(part) for part in pgvector.split(".")[:2]) < MINIMUM_PGVECTOR:
        raise DatabaseError(
            f"the database has pgvector {pgvector}; {need}",
            hint="Upgrade the extension, then run `ALTER EXTENSION vector UPDATE`.",
        )


def upgrade(connection: psycopg.Connection[Any], target: str = "head") -> None:
    """Runs the revisions up to `target` on the connection, each in a transaction of its own."""
    _alembic(connection).upgrade(target)


def downgrade(connection: psycopg.Connection[Any], target: str) -> None:
    """Takes revisions back down to `target` (`base` for all)."""
    _alembic(connection).downgrade(target)


class _Alembic:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        # Imported here: most commands find the schema current and never need Alembic.
        from alembic.config import Config  # noqa: PLC0415
        from sqlalchemy import create_engine  # noqa: PLC0415
        from sqlalchemy.pool import StaticPool  # noqa: PLC0415

        self._engine = create_engine(
            "postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool
        )
        self._config = Config()
        self._config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))

    def upgrade(self, target: str) -> None:
        from alembic import command  # noqa: PLC0415

        with self._engine.connect() as connection:
            self._config.attributes["connection"] = connection
            command.upgrade(self._config, target)

    def downgrade(self, target: str) -> None:
        from alembic import command  # noqa: PLC0415

        with self._engine.connect() as connection:
            self._config.attributes["connection"] = connection
            command.downgrade(self._config, target)


def _alembic(connection: psycopg.Connection[Any]) -> _Alembic:
    return _Alembic(connection)
