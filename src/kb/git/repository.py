"""One git repository, local or mirrored from a URL, read at any commit without a checkout."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.git import history, revisions, trees, worktree
from kb.git.failures import missing_object, reading
from kb.git.location import find_local
from kb.git.mirror import mirror_path, update_mirror
from kb.git.objects import ObjectStore
from kb.git.urls import RemoteUrl, looks_remote, parse_url
from kb.model.commits import CommitInfo, DirtyFile, FileChange, Head
from kb.model.files import TreeFile

DIRTY_LIMIT = 1000


class Repository:
    """Reads one repository; cheap to open, picklable, and usable in any thread and after a fork.

    Methods that take a commit take its full SHA, a tree's id, or a `CommitInfo`; only `resolve` reads
    what people write. Whatever libgit2 raises arrives as a `RepositoryError` or a `NotFoundError`.
    """

    def __init__(
        self,
        location: str,
        git_dir: Path,
        common_dir: Path,
        workdir: Path | None,
        *,
        is_remote: bool = False,
        overlay: Path | None = None,
    ) -> None:
        self.location = location
        """Identity: real path of the common git directory, or the normalised URL without credentials."""
        self.is_remote = is_remote
        self.workdir = workdir
        """Root of the work tree that was opened; None for a bare repository or a mirror."""
        self.overlay = overlay
        self._git_dir = git_dir
        self._common_dir = common_dir
        self._store = self._new_store()

    @classmethod
    def open(
        cls, where: str | Path, home: Path, *, fetch: bool = True, timeout: float | None = None
    ) -> Repository:
        """The repository that holds a path, or the one at a URL by way of a mirror below `home`.

        A URL is cloned, or fetched if its mirror exists; with `fetch` off the mirror is read as it is.
        `timeout` (seconds) limits each git process. `location` of an opened repository opens it again.

        Raises:
            UsageError: a transport other than https, ssh, git and file, or a leading `-`.
            RepositoryError: no repository there, it cannot be read, or fetching failed.
            NotFoundError: `fetch` is off and there is no mirror.
        """
        if not str(where).strip():
            raise UsageError("a blank names no repository", hint="give a path (. is this folder) or a URL")
        remote = _remote(where)
        if remote is not None:
            return cls._open_remote(remote, home, fetch=fetch, timeout=timeout)
        local = find_local(Path(where))
        return cls(str(local.common_dir), *local)

    @classmethod
    def _open_remote(cls, url: RemoteUrl, home: Path, *, fetch: bool, timeout: float | None) -> Repository:
        mirror = mirror_path(home, url)
        if fetch:
            update_mirror(home, url, timeout)
        elif not mirror.is_dir():
            raise NotFoundError(f"{url.location} has not been fetched yet", hint="index it first")
        real = mirror.resolve()
        return cls(url.location, real, real, None, is_remote=True)

    @classmethod
    def reopen(cls, location: str, home: Path, *, is_remote: bool) -> Repository:
        """The repository at a stored `location`, without fetching.

        Raises:
            RepositoryError, NotFoundError: it cannot be read any more, or its mirror is gone.
        """
        if is_remote:
            return cls._open_remote(parse_url(location), home, fetch=False, timeout=None)
        return cls.open(Path(location), home)

    @classmethod
    def locate(cls, where: str | Path) -> str:
        """The `location` of the repository that a path or URL names, without fetching.

        Raises:
            UsageError, RepositoryError: as `open`.
        """
        remote = _remote(where)
        return remote.location if remote is not None else str(find_local(Path(where)).common_dir)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_store"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._store = self._new_store()

    def _new_store(self) -> ObjectStore:
        return ObjectStore(self._git_dir, self.overlay, self.location if self.is_remote else None)

    def __repr__(self) -> str:
        return f"Repository({self.location!r})"

    @property
    def default_name(self) -> str:
        """What the repository is called if nobody says otherwise: its folder's or URL's last part."""
        if self.is_remote:
            return self.location.rsplit("/", 1)[-1]
        folder = self._common_dir
        if folder.name == ".git":
            folder = folder.parent
        return folder.name.removesuffix(".git") or "repository"

    @property
    def is_bare(self) -> bool:
        """Whether there is no work tree, so nothing can be dirty."""
        return self.workdir is None

    # --- commits

    def resolve(self, commitish: str = "HEAD") -> CommitInfo:
        """The commit that a commit-ish names; see `kb.git.revisions.resolve` for its errors."""
        with reading(self._git_dir):
            return revisions.resolve(self._store, commitish)

    def head(self) -> Head:
        """HEAD's branch (None where detached) and commit."""
        with reading(self._git_dir):
            return revisions.head(self._store)

    def head_sha(self) -> str | None:
        """HEAD's commit; None where it has none yet."""
        with reading(self._git_dir):
            return None if self._store.handle.head_is_unborn else revisions.head(self._store).sha

    def branches(self) -> dict[str, str]:
        """Local branches (a mirror's: the remote's) and their commits, by name."""
        with reading(self._git_dir):
            return history.branches(self._store)

    def tags(self) -> dict[str, str]:
        """Tags and the commits they stand for, by name."""
        with reading(self._git_dir):
            return history.tags(self._store)

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Whether `ancestor` is `descendant` or comes before it."""
        with reading(self._git_dir):
            return history.is_ancestor(self._store, self._known(ancestor), self._known(descendant))

    def distance(self, old: str, new: str) -> int:
        """How many commits `old` is behind `new`: those that `new` has and `old` has not."""
        with reading(self._git_dir):
            return history.distance(self._store, self._known(old), self._known(new))

    def nearest_ancestor(self, sha: str, candidates: Collection[str]) -> str | None:
        """The candidate that is `sha` or the fewest parent steps before it."""
        with reading(self._git_dir):
            return history.nearest_ancestor(self._store, self._known(sha), candidates)

    def lines_of_descent(self, tip: str, among: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Those of `among` that `tip` comes from, itself too, youngest first, each with the nearest before it."""
        with reading(self._git_dir):
            return history.lines_of_descent(self._store, self._known(tip), among)

    def log(self, tip: str, since: str | None = None, *, first_parent: bool = False) -> Iterator[CommitInfo]:
        """The commits of `tip` that `since` has not, oldest first; `first_parent` skips merged branches."""
        with reading(self._git_dir):
            known_since = None if since is None else self._known(since)
            yield from history.log(self._store, self._known(tip), known_since, first_parent=first_parent)

    def _known(self, sha: str) -> str:
        if self._store.commit(sha) is None:
            raise missing_object(sha, str(self._git_dir), incomplete=self._store.incomplete)
        return sha

    # --- files and blobs

    def files(self, commit: CommitInfo | str) -> Iterator[TreeFile]:
        """Every file of a commit or tree, in git's order, one at a time."""
        with reading(self._git_dir):
            yield from trees.walk(self._store, self._tree(commit))

    def file_at(self, commit: CommitInfo | str, path: str) -> TreeFile | None:
        """The file at a path as `files` shows it; None where there is none, or a folder."""
        with reading(self._git_dir):
            return trees.find(self._store, self._tree(commit), path)

    def diff(self, old: CommitInfo | str, new: CommitInfo | str) -> list[FileChange]:
        """The paths that differ, sorted, at the cost of the difference; a rename is two changes."""
        with reading(self._git_dir):
            return trees.compare(self._store, self._tree(old), self._tree(new))

    def read(self, oid: str) -> bytes:
        """A blob's bytes; ask `size` first where it may be large.

        Raises:
            NotFoundError: the repository does not hold it (a partial clone may not).
        """
        with reading(self._git_dir):
            return self._store.read(pygit2.Oid(hex=oid))

    def size(self, oid: str) -> int:
        """A blob's size in bytes, without reading it.

        Raises:
            NotFoundError: the repository does not hold it.
        """
        with reading(self._git_dir):
            size = self._store.size(pygit2.Oid(hex=oid))
            if size is None:
                raise missing_object(oid, str(self._git_dir), incomplete=self._store.incomplete)
            return size

    def _tree(self, commit: CommitInfo | str) -> bytes:
        if isinstance(commit, CommitInfo):
            return bytes.fromhex(commit.tree)
        if commit == trees.EMPTY_TREE:
            return bytes.fromhex(commit)
        found = self._store.handle.get(commit)
        if found is None:
            raise missing_object(commit, str(self._git_dir), incomplete=self._store.incomplete)
        if found.type == ObjectType.COMMIT:
            return found.peel(pygit2.Commit).tree_id.raw
        if found.type == ObjectType.TREE:
            return found.id.raw
        raise RepositoryError(f"object {commit} is a {found.type_str}, neither a commit nor a tree")

    # --- the work tree

    def dirty(self, limit: int = DIRTY_LIMIT) -> list[DirtyFile]:
        """What the work tree has that HEAD has not, at most `limit` paths; nothing where bare."""
        with reading(self._git_dir):
            return worktree.dirty(self._store, limit)

    def write_worktree_tree(self, into: Path) -> str:
        """Writes the uncommitted state as a tree into the object store `into`; returns the tree's id.

        `into` is made if absent and belongs to kb; read the tree through `with_overlay(into)`.

        Raises:
            RepositoryError: the repository is bare, or HEAD has no commit.
        """
        with reading(self._git_dir):
            if self.is_bare:
                raise RepositoryError(f"the repository {self.location} is bare: it has no work tree")
            head = revisions.resolve(self._store, "HEAD")
            worktree.open_overlay(into, self._common_dir)
            return worktree.write_tree(ObjectStore(self._git_dir, into.resolve()), head.tree)

    def with_overlay(self, objects: Path) -> Repository:
        """The same repository, also showing the objects that `write_worktree_tree` put into `objects`."""
        return Repository(
            self.location,
            self._git_dir,
            self._common_dir,
            self.workdir,
            is_remote=self.is_remote,
            overlay=objects.resolve(),
        )


def _remote(where: str | Path) -> RemoteUrl | None:
    """The remote that text names; None where it is a path. A `Path` always is one."""
    if not isinstance(where, str):
        return None
    if where.startswith("-") or "\0" in where:
        raise UsageError("a repository cannot begin with '-'", hint="write ./ before a folder's name")
    if not looks_remote(where) or ("://" not in where and "::" not in where and _exists(where)):
        return None
    return parse_url(where)


def _exists(where: str) -> bool:
    try:
        return Path(where).exists()
    except OSError:
        return False
