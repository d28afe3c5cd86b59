"""Objects of one repository, read through libgit2 from any thread and any forked process."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from kb.errors import RepositoryError
from kb.git.failures import missing_object, one_line, open_failure


def open_handle(path: Path | str) -> pygit2.Repository:
    """The repository at exactly that path, never one around it; whatever is wrong is raised as libgit2 raises it.

    A partial clone may announce itself as an extension. kb copes with absent objects, so it is let in.
    """
    pygit2.settings.set_extensions(["partialclone"])
    return pygit2.Repository(str(path), RepositoryOpenFlag.NO_SEARCH)


class ObjectStore:
    """Opens the repository at `git_dir` on first use, once per process and thread.

    libgit2's handles must not cross a fork and are not shared between threads; both open their own.
    `overlay` is a folder of objects in front of the repository's (see `kb.git.worktree`); `url` is what
    the repository is a mirror of.
    """

    def __init__(self, git_dir: Path, overlay: Path | None = None, url: str | None = None) -> None:
        self.git_dir = git_dir
        self.url = url
        self.overlay = overlay
        self._opened = threading.local()

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[Path, Path | None, str | None]]:
        return (ObjectStore, (self.git_dir, self.overlay, self.url))

    @property
    def shown(self) -> str:
        """What people know the repository by: its URL, or its git directory."""
        return self.url or str(self.git_dir)

    @property
    def handle(self) -> pygit2.Repository:
        """This thread's libgit2 repository."""
        if getattr(self._opened, "pid", None) != os.getpid():
            self._opened.repository = self._open()
            self._opened.odb = self._opened.repository.odb
            self._opened.pid = os.getpid()
        repository: pygit2.Repository = self._opened.repository
        return repository

    @property
    def odb(self) -> pygit2.Odb:
        """This thread's object database."""
        _ = self.handle
        odb: pygit2.Odb = self._opened.odb
        return odb

    def _open(self) -> pygit2.Repository:
        try:
            repository = open_handle(self.git_dir)
            if self.overlay is not None:
                repository.set_odb(pygit2.Odb(str(self.overlay)))
        except (pygit2.GitError, ValueError, OSError) as error:
            raise open_failure(str(self.git_dir), error) from error
        return repository

    @property
    def incomplete(self) -> bool:
        """Whether the clone is shallow or partial, so that objects may rightly be absent."""
        if self.handle.is_shallow:
            return True
        config = self.handle.config
        return "extensions.partialclone" in config or any(
            entry.name.startswith("remote.") and entry.name.endswith(".promisor") for entry in config
        )

    def read(self, oid: pygit2.Oid) -> bytes:
        """The content of an object.

        Raises:
            NotFoundError: the repository does not hold it.
            RepositoryError: it is corrupt.
        """
        try:
            return self.odb.read(oid)[1]
        except KeyError as error:
            raise missing_object(str(oid), str(self.git_dir), incomplete=self.incomplete) from error
        except (pygit2.GitError, ValueError) as error:
            raise self._corrupt(oid, error) from error

    def size(self, oid: pygit2.Oid) -> int | None:
        """Bytes of an object, without reading its content; None where the repository does not hold it."""
        try:
            return self.odb.read_header(oid)[1]
        except KeyError:
            return None
        except (pygit2.GitError, ValueError) as error:
            raise self._corrupt(oid, error) from error

    def _corrupt(self, oid: pygit2.Oid, error: Exception) -> RepositoryError:
        return RepositoryError(
            f"object {oid} of the repository {self.git_dir} is corrupt: {one_line(str(error))}",
            hint=f"check it with: git -C {self.git_dir} fsck",
            oid=str(oid),
        )

    def commit(self, sha: str) -> pygit2.Commit | None:
        """The commit of that full id; None where the repository does not hold it, or it is no commit."""
        found = self.handle.get(sha)
        return found.peel(pygit2.Commit) if found is not None and found.type == ObjectType.COMMIT else None

    def is_commit_like(self, oid: pygit2.Oid) -> bool:
        """Whether an object is a commit or an annotated tag."""
        try:
            return self.odb.read_header(oid)[0] in (ObjectType.COMMIT, ObjectType.TAG)
        except (pygit2.GitError, KeyError, ValueError):
            return False
