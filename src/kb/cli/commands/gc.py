"""`kb gc`: drop what nobody needs any more."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.history import gc_lines

_EXAMPLES = """\b
Examples:
  kb gc --dry-run
  kb gc --keep-last 50 --newer-than 90
  kb gc --keep-last 0 --all-ages      # only what branches and tags name
"""


@click.command("gc", short_help="Drop old snapshots and what only they needed.", epilog=_EXAMPLES)
@click.option(
    "--keep-last",
    type=click.IntRange(min=0),
    metavar="N",
    default=10,
    show_default=True,
    help="Keep each repository's N snapshots that were sealed last.",
)
@click.option(
    "--newer-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Keep snapshots that were sealed in the last DAYS. Default: 30.",
)
@click.option("--all-ages", is_flag=True, help="Keep none for its age.")
@click.option("--repo", metavar="NAME|PATH", help="Only this repository's snapshots. Default: all.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@db_url_option
@json_option
def command(
    *,
    keep_last: int,
    newer_than: float | None,
    all_ages: bool,
    repo: str | None,
    dry_run: bool,
    db_url: str | None,
    as_json: bool,
) -> None:
    """Drop old snapshots, then every row that nothing reaches any more.

    Snapshots of commits that HEAD, a branch or a tag names always stay. What stays is not touched, and
    embeddings of texts that still live stay too. Waits for index runs that are under way; readers are
    not disturbed.
    """
    from datetime import timedelta

    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.errors import UsageError
    from kb.snapshot.gc import RetentionPolicy, collect_garbage

    if all_ages and newer_than is not None:
        raise UsageError("--all-ages and --newer-than exclude each other")
    age = None if all_ages else timedelta(days=30 if newer_than is None else newer_than)
    with open_app(load_settings(db_url=db_url)) as app:
        report = collect_garbage(app, RetentionPolicy(keep_last, age), repo=repo, dry_run=dry_run)
    if as_json:
        print_document("gc", report)
    else:
        print_lines(gc_lines(report))
