"""Which repository a path belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pygit2

from kb.errors import RepositoryError, UsageError
from kb.git.failures import open_failure
from kb.git.objects import open_handle


class LocalRepository(NamedTuple):
    """The folders of a repository on this machine, all real paths."""

    git_dir: Path
    """Holds HEAD and the index; a linked work tree has its own."""
    common_dir: Path
    """Holds objects and branches; one for all work trees, and so the repository's identity."""
    workdir: Path | None


def find_local(where: Path) -> LocalRepository:
    """The repository that holds the folder `where`: a work tree, a folder inside one, a git directory.

    Raises:
        RepositoryError: there is none, or libgit2 will not or cannot open it.
        UsageError: its path is not UTF-8.
    """
    try:
        where = where.expanduser()
        if not where.is_dir():
            what = "is not a folder" if where.exists() else "does not exist"
            raise RepositoryError(f"{where} {what}", hint="name a folder inside a git repository")
        found = pygit2.discover_repository(str(where))
        if found is None:
            raise _no_repository(where)
        opened = open_handle(found)
        git_dir = Path(opened.path or found).resolve()
        workdir = None if opened.is_bare or not opened.workdir else Path(opened.workdir).resolve()
    except (pygit2.GitError, ValueError, KeyError, OSError, RuntimeError) as error:
        raise open_failure(str(where), error) from error
    common_dir = _common_dir(git_dir)
    try:
        str(common_dir).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "the repository's path is not UTF-8", hint="move it, or index a clone of it"
        ) from None
    return LocalRepository(git_dir, common_dir, workdir)


def _common_dir(git_dir: Path) -> Path:
    pointer = git_dir / "commondir"
    return (git_dir / pointer.read_text().strip()).resolve() if pointer.is_file() else git_dir


def _no_repository(where: Path) -> RepositoryError:
    """Says so, and says more where a `.git` file leads to nothing."""
    for folder in (where, *where.resolve().parents):
        pointer = folder / ".git"
        if pointer.is_file():
            return RepositoryError(
                f"{pointer} leads to no git directory",
                hint="the work tree or submodule was moved: try `git worktree repair`",
            )
        if pointer.is_dir():
            return RepositoryError(
                f"the repository {pointer} is damaged: libgit2 does not take it for one",
                hint=f"check it with: git -C {folder} fsck",
            )
    return RepositoryError(
        f"{where} is in no git repository", hint="run `git init` there, or name another folder or a URL"
    )
