"""Which repository and which snapshot a question is about, and what to say when it is not obvious."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb.errors import KbError, NotFoundError, RepositoryError, UsageError
from kb.git.overlays import worktree_objects
from kb.git.repository import Repository
from kb.store.catalog import (
    RepositoryRow,
    SnapshotRow,
    find_repository,
    repositories,
    snapshots,
    worktree_snapshot,
)
from kb.store.database import Connection
from kb.store.parts import Parts


@dataclass(frozen=True)
class Selected:
    """The snapshot that answers, and what a user should know about the choice."""

    row: RepositoryRow
    repository: Repository | None
    """None where the repository cannot be read any more."""
    snapshot: SnapshotRow
    asked: str
    """The commit-ish that was asked for."""
    notice: str | None = None
    run: str | None = None
    """The command that makes what is missing, where something is."""


def select_repository(connection: Connection, selector: str | None, cwd: Path, home: Path) -> RepositoryRow:
    """The repository by name or path; else the one that holds the current folder; else the only one.

    Raises:
        NotFoundError: nothing is indexed, or nothing under that name or path.
        UsageError: several are indexed and none was chosen; lists them.
    """
    known = repositories(connection)
    if selector is not None:
        found = find_repository(connection, name=selector) or _at_path(connection, selector, home)
        if found is None:
            raise NotFoundError(f"no indexed repository is {selector!r}", hint=_choices(known))
        return found
    if not known:
        raise NotFoundError("nothing is indexed yet", hint="index a repository: kb index <path or URL>")
    here = _at_path(connection, str(cwd), home)
    if here is not None:
        return here
    if len(known) == 1:
        return known[0]
    raise UsageError("several repositories are indexed", hint=f"name one of them as repo: {_names(known)}")


def _at_path(connection: Connection, where: str, home: Path) -> RepositoryRow | None:
    """The repository that is kept under what `where` leads to: a URL, a path, a folder inside one."""
    try:
        location = Repository.open(where, home, fetch=False).location
    except KbError:
        return None
    return find_repository(connection, location=location)


def _names(known: list[RepositoryRow]) -> str:
    return ", ".join(row.name for row in known)


def _choices(known: list[RepositoryRow]) -> str:
    if not known:
        return "nothing is indexed yet: kb index <path or URL>"
    return f"indexed are: {_names(known)}"


def select_snapshot(
    connection: Connection,
    selector: str | None,
    commitish: str | None,
    cwd: Path,
    home: Path,
) -> Selected:
    """The snapshot of the commit asked for, else of its nearest indexed ancestor, and says which.

    Raises:
        NotFoundError: nothing of the repository is indexed, or neither the commit nor an ancestor.
    """
    row = select_repository(connection, selector, cwd, home)
    if commitish is not None and (commitish == "worktree" or commitish.startswith("worktree:")):
        return _worktree(connection, row, commitish, home)
    sealed = [one for one in snapshots(connection, row.repository_id) if one.sha is not None]
    if not sealed:
        raise NotFoundError(f"no snapshot of {row.name} is sealed", hint=f"run: kb index {row.location}")
    repository = _open(row, home)
    if repository is None:
        return _without_git(row, sealed, commitish)
    commit = repository.resolve(commitish or "HEAD")
    by_sha: dict[str, SnapshotRow] = {}
    for one in sealed:  # the newest seal first: of several recipes the last one used answers
        by_sha.setdefault(one.sha or "", one)
    if commit.sha in by_sha:
        return Selected(row, repository, by_sha[commit.sha], commitish or "HEAD")
    nearest = repository.nearest_ancestor(commit.sha, frozenset(by_sha))
    if nearest is None:
        raise NotFoundError(
            f"neither {commit.sha[:12]} nor an ancestor of it is indexed; "
            f"sealed last is {sealed[0].label[:12]}",
            hint=f"run: kb index {row.location} --sha {commit.sha[:12]}",
        )
    run = f"kb index {row.location} --sha {commit.sha[:12]}"
    notice = (
        f"{commitish or 'HEAD'} ({commit.sha[:12]}) is not indexed; this is its nearest indexed ancestor "
        f"{nearest[:12]}. To index it: {run}"
    )
    return Selected(row, repository, by_sha[nearest], commitish or "HEAD", notice, run)


def _worktree(connection: Connection, row: RepositoryRow, commitish: str, home: Path) -> Selected:
    """The snapshot of the work tree: `worktree`, or `worktree:<tree>` for that very state."""
    tree = commitish.partition(":")[2] or None
    found = worktree_snapshot(connection, row.repository_id, None, tree)
    if found is None:
        raise NotFoundError(
            f"no snapshot of {row.name} is {commitish}", hint=f"run: kb index {row.location} --worktree"
        )
    repository = _open(row, home)
    if repository is not None:
        repository = repository.with_overlay(worktree_objects(home, row.location))
    return Selected(row, repository, found, commitish)


def _open(row: RepositoryRow, home: Path) -> Repository | None:
    try:
        return Repository.open(row.location, home, fetch=False)
    except (RepositoryError, NotFoundError):
        return None


def _without_git(row: RepositoryRow, sealed: list[SnapshotRow], commitish: str | None) -> Selected:
    """A repository that is gone still answers for full or abbreviated shas, and with its last seal."""
    if commitish is None or commitish == "HEAD":
        notice = f"{row.location} cannot be read; this is the snapshot that was sealed last"
        return Selected(row, None, sealed[0], "HEAD", notice)
    fitting = [one for one in sealed if (one.sha or "").startswith(commitish.lower())]
    if len({one.sha for one in fitting}) != 1:
        raise NotFoundError(
            f"{row.location} cannot be read, and {commitish!r} names no snapshot by its sha",
            hint="see the snapshots: kb status",
        )
    return Selected(row, None, fitting[0], commitish, f"{row.location} cannot be read")


def select_snapshots(
    parts: Parts, selector: str | None, commitish: str | None, *, everything: bool = False
) -> list[SnapshotRow]:
    """The snapshot that `select_snapshot` chooses; with `everything` all of its repository's commits.

    Raises:
        NotFoundError, UsageError: as `select_snapshot`.
    """
    with parts.database.reader() as connection:
        chosen = select_snapshot(connection, selector, commitish, Path.cwd(), parts.home)
        if not everything:
            return [chosen.snapshot]
        return [one for one in snapshots(connection, chosen.row.repository_id) if one.sha is not None]
