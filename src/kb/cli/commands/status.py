"""`kb status`: what is indexed, how much, and in which database."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.status import status_lines


@click.command("status")
@click.option("--repo", metavar="NAME|PATH", help="Only this repository. Default: all of them.")
@db_url_option
@json_option
def command(*, repo: str | None, db_url: str | None, as_json: bool) -> None:
    """Show what is indexed, and in which database.

    Repositories with their snapshots and counts; with --json all snapshots, else the newest five of each.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.retrieve.status import status

    with open_app(load_settings(db_url=db_url)) as app:
        found = status(app, repo=repo)
    if as_json:
        print_document("status", found)
    else:
        print_lines(status_lines(found))
