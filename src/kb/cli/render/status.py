"""`kb status`, for a person: the database, then each repository with its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb.cli.render.words import columns, counted, human_size, short_sha
from kb.cli.terminal import dim, one_line, strong, warning

if TYPE_CHECKING:
    from kb.retrieve.status import RepositoryStatus, SnapshotStatus, Status

_LISTED = 5


def status_lines(status: Status) -> Iterator[str]:
    """Everything that kb knows about itself, on one screen for a few repositories."""
    about = f"schema {status.schema_revision}, {human_size(status.bytes)}"
    yield f"database: {one_line(status.database)}, {about}"
    if not status.repositories:
        yield "nothing is indexed yet: kb index <path or URL>"
    for repository in status.repositories:
        yield ""
        yield from _repository_lines(repository)


def _repository_lines(repository: RepositoryStatus) -> Iterator[str]:
    yield f"{strong(one_line(repository.name))}  {dim(one_line(repository.location))}"
    yield f"  {_head(repository)}"
    rows = [_snapshot_row(snapshot) for snapshot in repository.snapshots[:_LISTED]]
    yield from columns(rows)
    if repository.snapshots and repository.snapshots[0].kinds:
        kinds = sorted(repository.snapshots[0].kinds.items(), key=lambda item: (-item[1], item[0]))
        yield dim("  " + ", ".join(f"{kind} {number:,}" for kind, number in kinds))
    left = len(repository.snapshots) - _LISTED
    if left > 0:
        yield dim(f"  and {counted(left, 'older snapshot')}")


def _head(repository: RepositoryStatus) -> str:
    if not repository.reachable:
        return warning("not reachable: whether this is still so at HEAD is unknown")
    if repository.head is None:
        return warning("HEAD names no commit")
    head = f"HEAD {short_sha(repository.head)}"
    if repository.head_indexed:
        return f"{head} is indexed"
    if repository.commits_behind:
        return warning(f"{head} is not indexed; the newest snapshot is {_behind(repository.commits_behind)}")
    return warning(f"{head} is not indexed")


def _behind(commits: int) -> str:
    return f"{counted(commits, 'commit')} behind"


def _snapshot_row(snapshot: SnapshotStatus) -> tuple[str, ...]:
    return (
        short_sha(snapshot.sha),
        f"{snapshot.sealed_at:%Y-%m-%d %H:%M}",
        counted(snapshot.files, "file"),
        counted(snapshot.spans, "span"),
        counted(snapshot.artifacts, "artifact"),
        counted(snapshot.gaps, "gap"),
    )
