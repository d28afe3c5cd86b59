"""The use case `kb watch`: seals a branch's new commits as they appear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kb.errors import DatabaseError, NotFoundError, RepositoryError
from kb.git.repository import Repository
from kb.snapshot.index import index_repository
from kb.snapshot.repositories import no_stray_mirror
from kb.snapshot.requests import IndexReport, IndexRequest
from kb.store.parts import Parts


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What to follow."""

    repo: str
    branch: str | None = None
    """None follows HEAD."""
    interval: float = 5.0
    """Seconds between two looks."""
    once: bool = False
    jobs: int = 0
    max_blob_bytes: int = 2 * 1024 * 1024
    search: bool = False
    """As in `IndexRequest`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look: a report where there was something to index, else what stood in the way, if anything."""

    report: IndexReport | None = None
    trouble: str | None = None


def watch(parts: Parts, request: WatchRequest, pause: Callable[[float], None]) -> Iterator[Seen]:
    """Looks again and again, and seals the commit that the branch stands at whenever it is a new one.

    Commits that came and went between two looks are left to `kb backfill`. What cannot be read for a
    while (a fetch that fails, a branch being rewritten, a database that restarts) is reported and
    looked at again; with `once` it is an error.

    Raises:
        RepositoryError, NotFoundError: with `once`, the repository or the branch cannot be read.
        DatabaseError: with `once`, the database cannot be used.
    """
    last: str | None = None
    trouble: str | None = None
    while True:
        try:
            with no_stray_mirror(parts, request.repo):
                repository = Repository.open(request.repo, parts.home)
                commit = repository.resolve(request.branch or "HEAD")
            if commit.sha != last:
                report = index_repository(
                    parts,
                    IndexRequest(
                        repo=request.repo,
                        commitish=commit.sha,
                        jobs=request.jobs,
                        max_blob_bytes=request.max_blob_bytes,
                        report_dirty=False,
                        search=request.search,
                        fetch=False,
                    ),
                )
                last = commit.sha
                trouble = None
                yield Seen(report=report)
        except (RepositoryError, NotFoundError, DatabaseError) as error:
            if request.once:
                raise
            if str(error) != trouble:
                trouble = str(error)
                yield Seen(trouble=trouble)
        if request.once:
            return
        pause(request.interval)
