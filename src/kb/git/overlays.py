"""Where kb keeps the objects of uncommitted states: never in the user's own object store."""

from __future__ import annotations

import hashlib
from pathlib import Path


def worktree_objects(home: Path, location: str) -> Path:
    """The object store below kb's home for the work trees of the repository at `location`."""
    return home / "worktrees" / hashlib.sha256(location.encode("utf-8")).hexdigest()[:16] / "objects"
