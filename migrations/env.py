"""Runs the revisions on the connection kb hands over, or on `alembic -x url=postgresql://...`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, pool

VERSION_TABLE = "kb_schema_version"


def run(connection: Connection) -> None:
    context.configure(connection=connection, version_table=VERSION_TABLE, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        run(given)
        return
    url = context.get_x_argument(as_dictionary=True).get("url")
    if url is None:
        raise SystemExit("name the database: alembic -x url=postgresql://... (or use `kb db migrate`)")
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=pool.NullPool)
    with engine.connect() as connection:
        run(connection)


if context.is_offline_mode():
    raise SystemExit("offline mode is not supported; the schema is written out in migrations/schema.sql")
main()
