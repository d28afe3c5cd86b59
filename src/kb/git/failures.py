"""libgit2's errors as kb's: one line that says what is wrong, and a hint that says what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2

from kb.errors import KbError, NotFoundError, RepositoryError

MISSING_HINT = (
    "the clone is shallow or partial: bring the rest with `git fetch --unshallow` or "
    "`git fetch --refetch --no-filter`"
)


def open_failure(where: str, error: Exception) -> RepositoryError:
    """Why libgit2 would not open the repository at `where`."""
    text = str(error)
    if "not owned by current user" in text:
        owned = re.search(r"repository path '(.+)' is not owned", text)
        folder = (owned[1] if owned else where).rstrip("/")
        return RepositoryError(
            f"the repository {folder} belongs to another user, and git refuses to read it",
            hint=f"if you trust it: git config --global --add safe.directory {shlex.quote(folder)}",
        )
    if "sha256" in text or "object format" in text:
        return RepositoryError(
            f"the repository {where} uses SHA-256 object names, which kb cannot read",
            hint="index a clone of it that uses SHA-1",
        )
    if "extension" in text:
        return RepositoryError(
            f"the repository {where} uses a git extension that kb cannot read: {one_line(text)}",
            hint="index a fresh clone of it",
        )
    if isinstance(error, PermissionError) or "ermission denied" in text:
        return RepositoryError(f"the repository {where} cannot be read: permission denied")
    return RepositoryError(
        f"the repository {where} cannot be opened: {one_line(text)}",
        hint=f"check it with: git -C {where} fsck",
    )


def one_line(text: str) -> str:
    """The text on one line, without what only a terminal would understand, at most 300 characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= 300 else flat[:299] + "…"


def missing_object(oid: str, where: str, *, incomplete: bool) -> NotFoundError:
    """The repository refers to an object that it does not hold."""
    return NotFoundError(
        f"object {oid} is not in the repository {where}",
        hint=MISSING_HINT if incomplete else f"check it with: git -C {where} fsck",
        oid=oid,
    )


@contextmanager
def reading(where: Path) -> Iterator[None]:
    """Whatever libgit2 raises inside reaches the caller as a RepositoryError of one line."""
    try:
        yield
    except KbError:
        raise
    except (pygit2.GitError, LookupError, ValueError, OSError) as error:
        raise RepositoryError(
            f"the repository {where} cannot be read: {one_line(str(error))}",
            hint=f"check it with: git -C {where} fsck",
        ) from error
