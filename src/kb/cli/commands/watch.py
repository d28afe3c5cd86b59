"""`kb watch`: follow a branch."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option
from kb.cli.output import print_lines
from kb.cli.render.index import index_lines
from kb.cli.terminal import one_line


@click.command("watch", short_help="Follow a branch: index its newest commit, again and again.")
@click.argument("repo", metavar="REPO")
@click.option(
    "--branch", metavar="COMMIT-ISH", help="What to follow. Default: HEAD, whichever branch it is on."
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Between two looks.",
)
@click.option("--once", is_flag=True, help="Look once and end; what stands in the way is an error then.")
@db_url_option
@click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Worker processes. Default: one per core."
)
def command(
    *,
    repo: str,
    branch: str | None,
    interval: float,
    once: bool,
    db_url: str | None,
    jobs: int | None,
) -> None:
    """Index a branch's newest commit whenever it is another one, until Ctrl-C.

    REPO is a path, or a URL, which is fetched at each look. Switched branches, rewritten history and a
    branch that is gone for a while are followed; commits between two looks are left to `kb backfill`.
    """
    import time

    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.snapshot.watch import WatchRequest, watch

    settings = load_settings(db_url=db_url, jobs=jobs)
    request = WatchRequest(
        repo=repo,
        branch=branch,
        interval=interval,
        once=once,
        jobs=settings.jobs,
        max_blob_bytes=settings.max_blob_bytes,
        search=True,
    )
    with open_app(settings) as app:
        for seen in watch(app, request, time.sleep):
            if seen.report is not None:
                print_lines(index_lines(seen.report))
            else:
                click.echo(f"kb: {one_line(seen.trouble or '')}; looking again", err=True)
