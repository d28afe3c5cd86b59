"""The use case `kb status`: what is indexed, how much of it, and in which database."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kb.errors import KbError
from kb.git.repository import Repository
from kb.retrieve.select import select_repository
from kb.store.catalog import RepositoryRow, SnapshotRow, repositories, snapshots
from kb.store.parts import Parts
from kb.store.sizes import database_bytes, kinds_of


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class SnapshotStatus(_Record):
    """A sealed snapshot: files = parsed + gap_files + no_language; excluded beside."""

    sha: str
    sealed_at: datetime
    files: int
    parsed: int
    gap_files: int
    no_language: int
    excluded: int
    spans: int
    artifacts: int
    gaps: int
    kinds: dict[str, int] | None = None
    """Kind -> artifacts, for the newest snapshot of a repository."""


class RepositoryStatus(_Record):
    """A repository with its snapshots, the newest seal first."""

    name: str
    location: str
    reachable: bool
    head: str | None
    head_indexed: bool
    commits_behind: int | None
    """From the newest sealed snapshot to HEAD; None where that cannot be told."""
    snapshots: tuple[SnapshotStatus, ...]


class Status(_Record):
    """Everything that is indexed, and where."""

    database: str
    """Without a password."""
    schema_revision: str
    bytes: int
    repositories: tuple[RepositoryStatus, ...]


def status(parts: Parts, *, repo: str | None) -> Status:
    """The status of one repository, or of all of them where none is named."""
    with parts.database.reader() as connection:
        if repo is None:
            rows = repositories(connection)
        else:
            rows = [select_repository(connection, repo, Path.cwd(), parts.home)]
        listed = []
        for row in rows:
            sealed = snapshots(connection, row.repository_id)
            kinds = kinds_of(connection, sealed[0].lineage_id, sealed[0].ordinal) if sealed else None
            listed.append(_repository(row, sealed, kinds, parts.home))
        size = database_bytes(connection)
    return Status(
        database=parts.database.display(),
        schema_revision=parts.database.schema_state().expected,
        bytes=size,
        repositories=tuple(listed),
    )


def _repository(
    row: RepositoryRow, sealed: list[SnapshotRow], kinds: dict[str, int] | None, home: Path
) -> RepositoryStatus:
    head, behind, reachable = None, None, False
    try:
        repository = Repository.open(row.location, home, fetch=False)
        reachable = True
        head = repository.head().sha
        if sealed and sealed[0].sha is not None:
            behind = repository.distance(sealed[0].sha, head)
    except KbError:
        # Unreachable, unborn, or the snapshot's commit is gone: shown as unknown, never as fresh.
        behind = None
    return RepositoryStatus(
        name=row.name,
        location=row.location,
        reachable=reachable,
        head=head,
        head_indexed=any(one.sha == head for one in sealed if head is not None),
        commits_behind=behind,
        snapshots=tuple(_snapshot(one, kinds if n == 0 else None) for n, one in enumerate(sealed)),
    )


def _snapshot(row: SnapshotRow, kinds: dict[str, int] | None) -> SnapshotStatus:
    return SnapshotStatus(
        sha=row.label,
        sealed_at=row.sealed_at,
        files=row.files,
        parsed=row.parsed,
        gap_files=row.gap_files,
        no_language=row.no_language,
        excluded=row.excluded,
        spans=row.spans,
        artifacts=row.artifacts,
        gaps=row.gaps,
        kinds=kinds,
    )
