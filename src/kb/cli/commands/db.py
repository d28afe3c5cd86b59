"""`kb db`: the database that kb keeps its knowledge in, and its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from kb.cli.confirm import confirm
from kb.cli.options import db_url_option, json_option, yes_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.database import database_lines
from kb.errors import UsageError

if TYPE_CHECKING:
    from kb.config import Settings
    from kb.store.embedded import EmbeddedServer


@click.group("db")
def command() -> None:
    """Manage the embedded server and the schema.

    Without --db-url and KB_DB_URL kb runs a PostgreSQL of its own: on a unix socket only, started when it
    is needed, and up until `kb db stop`.
    """


@command.command("start")
@json_option
def start(*, as_json: bool) -> None:
    """Start the embedded server; an empty database gets its schema."""
    from kb.bootstrap import find_database

    settings = _embedded_settings()
    find_database(settings).ensure_ready()
    _report("db.start", settings, as_json=as_json)


@command.command("stop")
def stop() -> None:
    """Stop the embedded server; its data stays.

    It starts again when a command needs it.
    """
    was_up = _server(_embedded_settings()).stop()
    print_lines(["stopped" if was_up else "was not running"])


@command.command("status")
@db_url_option
@json_option
def status(*, db_url: str | None, as_json: bool) -> None:
    """Show the database and the state of its schema; starts nothing."""
    from kb.config import load_settings

    _report("db.status", load_settings(db_url=db_url), as_json=as_json)


@command.command("url")
@click.option(
    "--role",
    type=click.Choice(["reader", "writer", "owner"]),
    default="reader",
    show_default=True,
    help="Whose rights a connection to the embedded server has.",
)
@db_url_option
def url(*, role: Literal["reader", "writer", "owner"], db_url: str | None) -> None:
    """Print the database's URL, without a password.

    Starts the embedded server, so that the URL can be used.

    For example: psql "$(kb db url)"
    """
    from kb.bootstrap import find_database
    from kb.config import load_settings

    settings = load_settings(db_url=db_url)
    database = find_database(settings)
    if settings.db_url is None:
        database.ensure_ready()  # the roles come with the schema
        print_lines([getattr(database.urls, role)])
    else:
        print_lines([database.display()])


@command.command("migrate")
@db_url_option
def migrate(*, db_url: str | None) -> None:
    """Bring the schema to what this kb needs.

    An empty database needs no call: the first command that uses it migrates it.
    """
    from kb.bootstrap import find_database
    from kb.config import load_settings

    database = find_database(load_settings(db_url=db_url))
    before = database.schema_state().found
    after = database.migrate().found
    if before == after:
        print_lines([f"schema {after}: already current"])
    else:
        print_lines([f"schema {after}: migrated from {before or 'an empty database'}"])


@command.command("reset")
@yes_option
@db_url_option
def reset(*, yes: bool, db_url: str | None) -> None:
    """Erase everything that kb stores, of all repositories; asks first.

    The git repositories themselves are never touched.
    """
    from kb.bootstrap import find_database
    from kb.config import load_settings
    from kb.store.schema import downgrade

    settings = load_settings(db_url=db_url)
    if settings.db_url is None:
        server = _server(settings)
        confirm(f"erase everything in kb's embedded database ({server.data})?", yes=yes)
        server.reset()
    else:
        database = find_database(settings)
        confirm(f"erase everything that kb stores in {database.display()}?", yes=yes)
        with database.owner() as connection:
            downgrade(connection, "base")
    print_lines(["everything is erased; index again with: kb index <path or URL>"])


def _embedded_settings() -> Settings:
    """The settings, where they mean the embedded server.

    Raises:
        UsageError: they name a server, which is not kb's to start and stop.
    """
    from kb.config import load_settings

    settings = load_settings()
    if settings.db_url is not None:
        raise UsageError(
            "the settings name a database server, which is not kb's to start or stop",
            hint="unset KB_DB_URL (or db_url in kb.toml) to use the embedded server",
        )
    return settings


def _server(settings: Settings) -> EmbeddedServer:
    from kb.bootstrap import embedded_server

    return embedded_server(settings)


def _report(name: str, settings: Settings, *, as_json: bool) -> None:
    found = _state(settings)
    if as_json:
        print_document(name, found)
    else:
        print_lines(database_lines(found))


def _state(settings: Settings) -> dict[str, Any]:
    """What is known without starting anything; the schema only where the server answers."""
    from kb.bootstrap import find_database
    from kb.store.database import display_url

    found: dict[str, Any] = {"kind": "server", "running": True, "pid": None, "data": None, "log": None}
    if settings.db_url is None:
        server = _server(settings).status()
        found = {"kind": "embedded", "running": server.running, "pid": server.pid}
        found |= {"data": server.data, "log": server.log, "url": display_url(server.url)}
        if not server.running:
            return found | {"schema_state": None}
    database = find_database(settings)
    state = database.schema_state()
    schema = {"relation": state.relation, "found": state.found, "expected": state.expected}
    return found | {"url": database.display(), "schema_state": schema}
