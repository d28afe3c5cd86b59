"""`kb diff`: what two commits know otherwise."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option, repo_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.diff import diff_lines, diff_markdown

_EXAMPLES = """\b
Examples:
  kb diff main
  kb diff v1.4 v1.5 --kind contract --kind entity
  kb diff main --markdown --fail-on-breaking
"""


@click.command("diff", epilog=_EXAMPLES)
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="[HEAD]", required=False)
@repo_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@click.option("--markdown", is_flag=True, help="Print Markdown, fit for a comment on a pull request.")
@click.option("--fail-on-breaking", is_flag=True, help="Exit 1 when a change of a contract or entity breaks.")
@db_url_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    base: str,
    head: str | None,
    repo: str | None,
    kinds: tuple[str, ...],
    markdown: bool,
    fail_on_breaking: bool,
    db_url: str | None,
    as_json: bool,
) -> None:
    """Show what changed in meaning between two indexed commits.

    Artifacts added, removed, changed (from what to what) or moved; contracts and entities with a verdict,
    breaking or compatible, and its reasons. What stands in tests or examples only is listed last and
    never breaks. HEAD is what is checked out. Formatting and comments never show.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.retrieve.diff import diff_knowledge
    from kb.retrieve.library import Library

    with open_app(load_settings(db_url=db_url)) as app:
        found = diff_knowledge(Library(app), base, head, repo=repo, kinds=kinds)
    if as_json:
        print_document("diff", found)
    else:
        print_lines(diff_markdown(found) if markdown else diff_lines(found))
    if fail_on_breaking and found.breaking:
        ctx.exit(1)
