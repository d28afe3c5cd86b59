"""`kb log`: the life of a logical key."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option, repo_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.diff import history_lines


@click.command("log")
@click.argument("key", metavar="KEY")
@repo_option
@db_url_option
@json_option
def command(*, key: str, repo: str | None, db_url: str | None, as_json: bool) -> None:
    """Show when a key was added, changed and removed.

    Over the indexed commits that HEAD comes from, the newest first. KEY is a logical key, or a name that stands for one.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.retrieve.history import history
    from kb.retrieve.library import Library

    with open_app(load_settings(db_url=db_url)) as app:
        found = history(Library(app), key, repo=repo)
    if as_json:
        print_document("log", found)
    else:
        print_lines(history_lines(found))
