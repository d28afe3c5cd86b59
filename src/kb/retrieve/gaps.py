"""The use case `kb gaps`: what kb could not read in a snapshot."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kb.retrieve.select import select_snapshot
from kb.store.gaps import gaps_at
from kb.store.parts import Parts


class Gap(BaseModel):
    """A file, or part of one (lines 1-based, inclusive), that kb could not read."""

    model_config = ConfigDict(frozen=True)

    path: str
    reason: str
    start_line: int | None
    end_line: int | None
    detail: str


class GapList(BaseModel):
    """Every gap of a snapshot; an empty list means that everything was read."""

    model_config = ConfigDict(frozen=True)

    repository: str
    sha: str
    notice: str | None
    gaps: tuple[Gap, ...]


def gaps(parts: Parts, *, repo: str | None, sha: str | None) -> GapList:
    """The gaps of the snapshot that the selection rules choose."""
    with parts.database.reader() as connection:
        selected = select_snapshot(connection, repo, sha, Path.cwd(), parts.home)
        rows = gaps_at(connection, selected.snapshot.lineage_id, selected.snapshot.ordinal)
    return GapList(
        repository=selected.row.name,
        sha=selected.snapshot.label,
        notice=selected.notice,
        gaps=tuple(
            Gap(path=path, reason=reason, start_line=start, end_line=end, detail=detail)
            for path, reason, start, end, detail in rows
        ),
    )
