"""Commits, and the difference between two of them, as kb reads them from git."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kb.model.files import TreeFile


class CommitInfo(NamedTuple):
    """One commit; object ids are full and hexadecimal."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    """In git's order; empty for a root commit and at the boundary of a shallow clone."""
    committed_at: datetime
    """Committer's date, in UTC."""
    subject: str
    """First line of the message; never holds a NUL, and what is not text in it is replaced."""


class FileChange(NamedTuple):
    """What became of one path between two trees; renames are a removal and an addition."""

    path: str
    old: TreeFile | None
    """None: the path was added."""
    new: TreeFile | None
    """None: the path was removed."""


class Head(NamedTuple):
    """Where a repository's HEAD stands."""

    ref: str | None
    """`refs/heads/main`, or None where HEAD is detached."""
    sha: str


class DirtyFile(NamedTuple):
    """A path of the work tree that differs from HEAD; a folder that is wholly untracked ends with `/`."""

    path: str
    what: str
    """`modified`, `deleted`, `staged`, `untracked` or `conflicted`."""
