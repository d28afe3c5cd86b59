"""`kb index`: seal the knowledge of one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from kb.cli.options import db_url_option, json_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.index import index_lines

if TYPE_CHECKING:
    from kb.bootstrap import App
    from kb.config import Settings
    from kb.snapshot.requests import Progress


@click.command("index")
@click.argument("repo", metavar="REPO")
@click.option(
    "--sha", "commitish", metavar="COMMIT-ISH", default="HEAD", show_default=True, help="The commit."
)
@db_url_option
@json_option
@click.option(
    "--jobs", type=click.IntRange(1, 256), metavar="N", help="Worker processes. Default: one per core."
)
@click.option("--name", help="Name of the repository in kb. Default: the folder's, made unique.")
@click.option(
    "--include", "includes", multiple=True, metavar="GLOB", help="Only files that match; may be repeated."
)
@click.option(
    "--exclude", "excludes", multiple=True, metavar="GLOB", help="No files that match; may be repeated."
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="FOLDER",
    help="A folder that imports start from, such as src; may be repeated. Default: found by layout.",
)
@click.option(
    "--worktree",
    is_flag=True,
    help="The uncommitted state on top of HEAD, untracked files included; replaces the one before.",
)
@click.option("--full", is_flag=True, help="Start a new lineage: a clean index, whatever is stored.")
@click.option(
    "--no-search",
    is_flag=True,
    help="Leave the search index as it is; the next search or embed brings it up to date.",
)
@click.option("--fail-on-gaps", is_flag=True, help="Exit 1 when a file, or part of one, could not be read.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    repo: str,
    commitish: str,
    db_url: str | None,
    as_json: bool,
    jobs: int | None,
    name: str | None,
    includes: tuple[str, ...],
    excludes: tuple[str, ...],
    roots: tuple[str, ...],
    worktree: bool,
    full: bool,
    no_search: bool,
    fail_on_gaps: bool,
) -> None:
    """Index a repository at a commit.

    REPO is a path (a worktree, or bare) or a URL (https, ssh, git, file).

    Reads the commit's blobs, the working tree only with --worktree, and never runs the repository's
    code. A commit that is sealed already under the same settings is left as it is. Without --sha it
    says which uncommitted changes are not indexed.
    """
    from kb.cli.progress import TerminalProgress
    from kb.config import load_settings
    from kb.snapshot.index import index_repository
    from kb.snapshot.requests import IndexRequest

    settings = load_settings(db_url=db_url, jobs=jobs)
    request = IndexRequest(
        repo=repo,
        commitish=commitish,
        name=name,
        includes=includes,
        excludes=excludes,
        roots=roots,
        jobs=settings.jobs,
        full=full,
        worktree=worktree,
        search=not no_search,
        max_blob_bytes=settings.max_blob_bytes,
        # Whoever names a commit does not ask about the working tree, which takes a look at every file.
        report_dirty=ctx.get_parameter_source("commitish") is ParameterSource.DEFAULT,
    )
    with TerminalProgress() as progress, _opened(settings, progress) as app:
        report = index_repository(app, request, progress)
    if as_json:
        print_document("index", report)
    else:
        print_lines(index_lines(report))
    if fail_on_gaps and report.gap_count:
        ctx.exit(1)


@contextmanager
def _opened(settings: Settings, progress: Progress) -> Iterator[App]:
    """The parts; a first start of the embedded server takes seconds, so it is a stage of its own."""
    from kb.bootstrap import open_app

    progress("database", 0, 1)
    with open_app(settings) as app:
        progress("database", 1, 1)
        yield app
