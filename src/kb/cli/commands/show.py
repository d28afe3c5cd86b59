"""`kb show`: what is known about a key, a line or a span, and where it stands."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option, repo_option, sha_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.units import shown_lines

_EXAMPLES = """\b
Examples:
  kb show symbol:shop.orders.Order.total
  kb show src/shop/orders.py:42 --source
  kb show 9f2c4e1a
"""


@click.command("show", epilog=_EXAMPLES)
@click.argument("target", metavar="KEY|FILE:LINE|SPAN-ID")
@repo_option
@sha_option
@click.option("--source", is_flag=True, help="Print the very lines at that commit under each place.")
@db_url_option
@json_option
def command(
    *, target: str, repo: str | None, sha: str | None, source: bool, db_url: str | None, as_json: bool
) -> None:
    """Show what is known about a key, a line or a span.

    Each unit comes with the lines it stands on, how it was made, and whether it still holds at HEAD.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.retrieve.show import show

    with open_app(load_settings(db_url=db_url)) as app:
        shown = show(app, target, repo=repo, sha=sha, source=source)
    if as_json:
        print_document("show", shown)
    else:
        print_lines(shown_lines(shown))
