"""`kb gaps`: what kb could not read, and why."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option, repo_option, sha_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.gaps import gap_list_lines


@click.command("gaps")
@repo_option
@sha_option
@db_url_option
@json_option
def command(*, repo: str | None, sha: str | None, db_url: str | None, as_json: bool) -> None:
    """List what kb could not read, and why."""
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.retrieve.gaps import gaps

    with open_app(load_settings(db_url=db_url)) as app:
        found = gaps(app, repo=repo, sha=sha)
    if as_json:
        print_document("gaps", found)
    else:
        print_lines(gap_list_lines(found))
