"""The use case `kb backfill`: seals a repository's past, oldest commit first, each at the cost of its diff."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kb.git.repository import Repository
from kb.snapshot.index import index_repository
from kb.snapshot.repositories import no_stray_mirror
from kb.snapshot.requests import IndexReport, IndexRequest
from kb.store.parts import Parts


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """Which commits of which repository."""

    repo: str
    since: str
    """Commit-ish; the commits after it are sealed, and it itself."""
    until: str = "HEAD"
    every: int = 1
    """Seal every n-th commit, and always the last one."""
    first_parent: bool = False
    options: IndexRequest | None = None
    """Includes, excludes, roots and jobs to index with."""


@dataclass(slots=True)
class BackfillReport:
    """What was done; running it again goes on where it was stopped."""

    repository: str = ""
    commits: int = 0
    sealed: int = 0
    already: int = 0
    seconds: list[float] = field(default_factory=list)
    """Per sealed commit, in order."""


def backfill(
    parts: Parts, request: BackfillRequest, on_commit: Callable[[int, int, IndexReport], None]
) -> BackfillReport:
    """Seals the commits from `since` to `until`, oldest first. Stopped at any moment, it can be resumed.

    `on_commit` is told the number of the commit, how many there are, and the report, as each is through.

    Raises:
        RepositoryError, NotFoundError: the repository, or one of the two commits, cannot be read.
    """
    with no_stray_mirror(parts, request.repo):
        repository = Repository.open(request.repo, parts.home)
        until = repository.resolve(request.until)
        since = repository.resolve(request.since)
        history = [since, *repository.log(until.sha, since.sha, first_parent=request.first_parent)]
    chosen = [commit for number, commit in enumerate(history) if number % request.every == 0]
    if chosen[-1] != history[-1]:
        chosen.append(history[-1])
    report = BackfillReport(commits=len(chosen))
    base = request.options or IndexRequest(repo=request.repo)
    for number, commit in enumerate(chosen, start=1):
        made = index_repository(
            parts,
            IndexRequest(
                repo=request.repo,
                commitish=commit.sha,
                name=base.name,
                includes=base.includes,
                excludes=base.excludes,
                roots=base.roots,
                jobs=base.jobs,
                max_blob_bytes=base.max_blob_bytes,
                report_dirty=False,
                search=base.search,
                fetch=False,
            ),
        )
        report.repository = made.repository
        if made.already_sealed:
            report.already += 1
        else:
            report.sealed += 1
            report.seconds.append(made.seconds)
        on_commit(number, len(chosen), made)
    return report
