"""What a caller asks of the index, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """One commit of one repository, and how to read it."""

    repo: str
    """A path or a URL."""
    commitish: str = "HEAD"
    name: str | None = None
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders that dotted module names start from; found by looking where none are given."""
    jobs: int = 0
    """Worker processes; 0 means one per core."""
    full: bool = False
    """A lineage of its own from nothing, whatever is known already."""
    max_blob_bytes: int = 2 * 1024 * 1024
    worktree: bool = False
    """The uncommitted state of the work tree on top of HEAD instead of a commit."""
    report_dirty: bool = True
    """Look for uncommitted changes that the snapshot of HEAD has not: the one step whose cost grows with
    the repository, because every file of the work tree is looked at."""
    search: bool = False
    """Put the sealed snapshot into the search index too, so that readers can search it at once."""
    fetch: bool = True
    """Bring a URL's mirror up to date first."""


class GapRow(NamedTuple):
    """A file, or part of one (lines 1-based, inclusive), that kb could not read."""

    path: str
    reason: str
    start_line: int | None
    end_line: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What a snapshot holds: files = parsed + gap_files + no_language; excluded beside."""

    repository: str
    sha: str
    already_sealed: bool
    files: int
    parsed: int
    gap_files: int
    no_language: int
    excluded: int
    spans: int
    artifacts: int
    gap_count: int
    gaps: list[GapRow]
    dirty: list[str] = field(default_factory=list)
    """Changes of the working tree that are not part of the snapshot."""
    seconds: float = 0.0
    notices: list[str] = field(default_factory=list)
    incremental: bool = False
    parsed_blobs: int = 0
    """Blobs that had not been parsed before."""
    linked_files: int = 0
    """Files that were linked for this snapshot."""
    linked_homes: int = 0
    """(file, extractor) pairs that were linked."""


class Progress(Protocol):
    """Told how far a run is; may be called often."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` of `total` steps of `stage` are through."""
        ...


def silent(stage: str, done: int, total: int) -> None:
    """A `Progress` that says nothing."""
