"""`kb backfill`: seal a repository's past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.options import db_url_option, json_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.history import backfill_lines

if TYPE_CHECKING:
    from kb.snapshot.requests import IndexReport

_EXAMPLES = """\b
Examples:
  kb backfill . --since v1.0
  kb backfill . --since HEAD~500 --every 10 --first-parent
"""


@click.command("backfill", epilog=_EXAMPLES)
@click.argument("repo", metavar="REPO")
@click.option(
    "--since", metavar="COMMIT-ISH", required=True, help="The oldest commit: it, and those after it."
)
@click.option("--until", metavar="COMMIT-ISH", default="HEAD", show_default=True, help="The newest commit.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Only every n-th commit, and always the newest.",
)
@click.option(
    "--first-parent", is_flag=True, help="Only the branch's own line: merges, not what they merged."
)
@db_url_option
@json_option
@click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Worker processes. Default: one per core."
)
def command(
    *,
    repo: str,
    since: str,
    until: str,
    every: int,
    first_parent: bool,
    db_url: str | None,
    as_json: bool,
    jobs: int | None,
) -> None:
    """Index the history of a repository, oldest commit first.

    REPO is a path or a URL. Each commit costs what it changed. Commits that are sealed already are left
    as they are, so a run that was stopped goes on where it was when it is repeated.
    """
    from kb.bootstrap import open_app
    from kb.cli.progress import TerminalProgress
    from kb.config import load_settings
    from kb.snapshot.backfill import BackfillRequest, backfill
    from kb.snapshot.requests import IndexRequest

    settings = load_settings(db_url=db_url, jobs=jobs)
    request = BackfillRequest(
        repo=repo,
        since=since,
        until=until,
        every=every,
        first_parent=first_parent,
        options=IndexRequest(
            repo=repo, jobs=settings.jobs, max_blob_bytes=settings.max_blob_bytes, search=True
        ),
    )
    with open_app(settings) as app, TerminalProgress() as progress:

        def on_commit(number: int, commits: int, _: IndexReport) -> None:
            progress("commits", number, commits)

        report = backfill(app, request, on_commit)
    if as_json:
        print_document("backfill", report)
    else:
        print_lines(backfill_lines(report))
