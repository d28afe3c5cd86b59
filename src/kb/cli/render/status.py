"""`kb status`, for a person: the database, then each repository with its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb.cli.render.words import columns, counted, human_size, short_sha
from kb.cli.terminal import dim, one_line, strong, warning

if TYPE_CHECKING:
    from kb.model.served import DatabaseStatus, RepositoryStatus, SnapshotStatus, Status

_LISTED = 5


def status_lines(status: Status) -> Iterator[str]:
    """Everything that kb knows about itself, on one screen for a few repositories."""
    yield _database_line(status.database)
    if not status.repositories:
        yield "nothing is indexed yet: kb index <path or URL>"
    for repository in status.repositories:
        yield ""
        yield from _repository_lines(repository)


def _database_line(database: DatabaseStatus) -> str:
    where = "embedded server" if database.kind == "embedded" else one_line(database.url)
    about = f"PostgreSQL {database.server_version}, schema {database.revision}"
    return f"database: {where}, {about}, {human_size(database.size_bytes)}"


def _repository_lines(repository: RepositoryStatus) -> Iterator[str]:
    yield f"{strong(one_line(repository.name))}  {dim(one_line(repository.location))}"
    yield f"  {_head(repository)}"
    rows = [_snapshot_row(snapshot) for snapshot in repository.snapshots[:_LISTED]]
    yield from columns(rows)
    left = len(repository.snapshots) - _LISTED
    if left > 0:
        yield dim(f"  and {counted(left, 'older snapshot')}")


def _head(repository: RepositoryStatus) -> str:
    if repository.head_sha is None:
        return warning("HEAD cannot be read: the repository is not reachable")
    head = f"HEAD {short_sha(repository.head_sha)}"
    if repository.commits_behind is None:
        return warning(f"{head} has no indexed ancestor")
    if repository.commits_behind:
        return warning(f"{head} is {counted(repository.commits_behind, 'commit')} ahead of what is indexed")
    return f"{head} is indexed"


def _snapshot_row(snapshot: SnapshotStatus) -> tuple[str, ...]:
    return (
        short_sha(snapshot.sha),
        f"{snapshot.sealed_at:%Y-%m-%d %H:%M}",
        counted(snapshot.files, "file"),
        counted(snapshot.spans, "span"),
        counted(snapshot.artifacts, "artifact"),
        counted(snapshot.gaps, "gap"),
    )
