"""`kb serve`: the MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click
from click.core import ParameterSource

from kb.cli.options import db_url_option
from kb.errors import UsageError

if TYPE_CHECKING:
    from kb.mcp.rendering import Answers


@click.command("serve")
@click.option(
    "--http", "listen", metavar="HOST:PORT", help="Serve over streamable HTTP there. Default: over stdio."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A further name that Host and Origin headers may have; may be repeated.",
)
@click.option(
    "--rate",
    type=click.IntRange(min=0),
    default=1200,
    show_default=True,
    metavar="N",
    help="HTTP requests of one client in a minute; 0 for no limit.",
)
@click.option(
    "--answers",
    type=click.Choice(["structured", "text"]),
    default="structured",
    show_default=True,
    help="Where the data of an answer stands: text is for clients that read nothing else.",
)
@db_url_option
def command(
    *, listen: str | None, hosts: tuple[str, ...], rate: int, answers: str, db_url: str | None
) -> None:
    """Serve the knowledge to coding agents (MCP).

    Over stdio for one client that starts it (see `kb mcp-config`), or over HTTP for many. Reads only.
    An address that other machines can reach needs KB_AUTH_TOKEN; clients send it as a bearer token.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.mcp.guard import parse_address, require_token
    from kb.mcp.serving import run_http, run_stdio

    _require_http_for(listen)
    settings = load_settings(db_url=db_url)
    token = settings.auth_token.get_secret_value() if settings.auth_token is not None else None
    if listen is not None:
        require_token(parse_address(listen), token)  # before a database is started for nothing
    form = cast("Answers", answers)
    with open_app(settings) as app:
        if listen is None:
            run_stdio(app, form)
        else:
            run_http(
                app,
                listen,
                token=token,
                hosts=hosts,
                per_minute=rate,
                answers=form,
                announce=lambda url: click.echo(f"serving {url}", err=True),
            )


def _require_http_for(listen: str | None) -> None:
    """Returns where no option is given that means something over HTTP alone, or HTTP is served.

    Raises:
        UsageError: over stdio nobody could tell that it has no effect.
    """
    context = click.get_current_context()
    for name, option in (("hosts", "--allow-host"), ("rate", "--rate")):
        if listen is None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option} means something over HTTP alone", hint="give --http HOST:PORT too")
