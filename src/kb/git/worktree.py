"""The uncommitted state of a work tree: what differs from HEAD, and all of it as a tree.

Only libgit2 looks at the work tree: no hook, no external filter and no file system monitor runs, and
neither the user's index nor the user's object store is written to.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path

import pygit2
from pygit2.enums import FileStatus, ObjectType
from pygit2.ffi import C, ffi

from kb.errors import RepositoryError
from kb.git.failures import one_line
from kb.git.objects import ObjectStore, open_handle
from kb.git.paths import render_path
from kb.git.trees import EXECUTABLE, FILE, FOLDER, SUBMODULE, SYMLINK, Entry, canonical_mode, read_tree
from kb.model.commits import DirtyFile

SKIP_WORKTREE = 1 << 14
"""libgit2's GIT_INDEX_ENTRY_SKIP_WORKTREE."""
STAGED = (
    FileStatus.INDEX_NEW
    | FileStatus.INDEX_MODIFIED
    | FileStatus.INDEX_DELETED
    | FileStatus.INDEX_RENAMED
    | FileStatus.INDEX_TYPECHANGE
)
IN_WORK_TREE = (
    FileStatus.WT_NEW
    | FileStatus.WT_MODIFIED
    | FileStatus.WT_DELETED
    | FileStatus.WT_TYPECHANGE
    | FileStatus.WT_RENAMED
    | FileStatus.CONFLICTED
)


def dirty(store: ObjectStore, limit: int) -> list[DirtyFile]:
    """What differs between HEAD and the work tree, sorted by path, at most `limit` of it.

    Ignored files are left out, a folder without any tracked file is one entry, and a path that is
    both staged and changed again counts by the later change.
    """
    if store.handle.is_bare:
        return []
    found = sorted((render_path(os.fsencode(path))[0], flags) for path, flags in _status(store, "normal"))
    return [DirtyFile(path, _word(flags)) for path, flags in found[:limit]]


def _status(store: ObjectStore, untracked: str) -> Iterator[tuple[str, int]]:
    """What differs, by path; files that a sparse checkout left out of the work tree do not."""
    sparse = "core.sparsecheckout" in store.handle.config
    for path, flags in store.handle.status(untracked_files=untracked).items():
        if not flags & (STAGED | IN_WORK_TREE):
            continue
        if sparse and flags == FileStatus.WT_DELETED and _is_left_out(store, path):
            continue
        yield path, flags


def _is_left_out(store: ObjectStore, path: str) -> bool:
    """Whether the index marks an entry as not checked out; the bindings show that in their C struct only."""
    index = store.handle.index._index  # noqa: SLF001 - no public way to an entry's flags
    entry = C.git_index_get_bypath(index, os.fsencode(path), 0)
    return entry != ffi.NULL and bool(entry.flags_extended & SKIP_WORKTREE)


def _word(flags: int) -> str:
    if flags & FileStatus.CONFLICTED:
        return "conflicted"
    if flags & FileStatus.WT_DELETED:
        return "deleted"
    if flags & (FileStatus.WT_MODIFIED | FileStatus.WT_TYPECHANGE | FileStatus.WT_RENAMED):
        return "modified"
    return "staged" if flags & STAGED else "untracked"


def open_overlay(objects: Path, common_dir: Path) -> None:
    """Makes `objects` an object store of kb's own that also shows all objects of the repository.

    Other processes read through it as soon as it is there: it comes into being whole, and what it shows
    is replaced and never written over.
    """
    shows = os.fsencode(common_dir / "objects") + b"\n"
    alternates = objects / "info" / "alternates"
    if alternates.is_file() and alternates.read_bytes() == shows:
        return
    objects.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{objects.name}.new-", dir=objects.parent))
    try:
        (fresh / "info").mkdir()
        (fresh / "info" / "alternates").write_bytes(shows)
        try:
            fresh.rename(objects)
        except OSError:  # it is there: made by another process meanwhile, or the repository has moved
            (objects / "info").mkdir(exist_ok=True)
            (fresh / "info" / "alternates").replace(alternates)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@dataclass
class _Folder:
    """What is to change in one folder of a tree; None stands for a name that is gone."""

    leaves: dict[bytes, Entry | None] = field(default_factory=dict)
    folders: dict[bytes, _Folder] = field(default_factory=dict)

    def put(self, path: bytes, entry: Entry | None) -> None:
        *parents, name = path.split(b"/")
        folder = self
        for parent in parents:
            folder = folder.folders.setdefault(parent, _Folder())
        folder.leaves[name] = entry


def write_tree(store: ObjectStore, head_tree: str) -> str:
    """Writes HEAD's tree with the work tree's changes into `store`'s overlay and returns its id.

    Untracked files that are not ignored are in it; repositories nested in the work tree are not.
    """
    workdir = Path(store.handle.workdir or "")
    changes = _Folder()
    for path, flags in _status(store, "all"):
        if not path.endswith("/"):
            changes.put(os.fsencode(path), _present(store, workdir, path, flags))
    written = _rebuild(store, bytes.fromhex(head_tree), changes)
    return written.hex() if written is not None else _write(store, ObjectType.TREE, b"").hex()


def _present(store: ObjectStore, workdir: Path, path: str, flags: int) -> Entry | None:
    """What `git add` would make of a path now; None where it is gone."""
    if flags & FileStatus.INDEX_DELETED and not flags & FileStatus.WT_NEW:
        return None
    if not flags & IN_WORK_TREE:
        staged = store.handle.index[path]
        return Entry(canonical_mode(int(staged.mode)), staged.id.raw)
    target = workdir / path
    try:
        found = target.lstat()
        if stat.S_ISDIR(found.st_mode):
            return _submodule(target)
        if stat.S_ISLNK(found.st_mode):
            return Entry(SYMLINK, _write(store, ObjectType.BLOB, os.fsencode(target.readlink())))
        if not stat.S_ISREG(found.st_mode):
            return None
        return Entry(_file_mode(store, path, found.st_mode), _blob_of(store, target, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        shown = render_path(os.fsencode(path))[0]
        raise RepositoryError(
            f"the work tree's file {shown} cannot be read: {one_line(str(error))}"
        ) from error


def _file_mode(store: ObjectStore, path: str, mode: int) -> int:
    """The executable bit of the disk, or the index's where the file system is said not to keep one."""
    config = store.handle.config
    if "core.filemode" in config and not config.get_bool("core.filemode"):
        index = store.handle.index
        return canonical_mode(int(index[path].mode)) if path in index else FILE
    return EXECUTABLE if mode & 0o100 else FILE


def _submodule(folder: Path) -> Entry | None:
    try:
        return Entry(SUBMODULE, open_handle(folder).revparse_single("HEAD").id.raw)
    except (pygit2.GitError, KeyError, ValueError):
        return None


def _blob_of(store: ObjectStore, target: Path, path: str) -> bytes:
    """The blob that git would make of a file, line endings converted as `.gitattributes` says.

    Large files stream through libgit2; what either store holds already is not written again.
    """
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        # libgit2's bindings cannot be told a name that is not UTF-8: such a file is taken byte by byte.
        return _write(store, ObjectType.BLOB, target.read_bytes())
    oid = store.handle.hashfile(os.fspath(target), as_path=path)
    if oid not in store.odb:
        oid = store.handle.create_blob_fromworkdir(path)
    return oid.raw


def _write(store: ObjectStore, kind: ObjectType, data: bytes) -> bytes:
    header = f"{kind.name.lower()} {len(data)}\0".encode()
    oid = pygit2.Oid(raw=sha1(header + data, usedforsecurity=False).digest())
    if oid not in store.odb:
        store.odb.write(kind, data)
    return oid.raw


def _rebuild(store: ObjectStore, base: bytes | None, changes: _Folder) -> bytes | None:
    """A tree with changes applied; only the changed folders are written. None where nothing is left."""
    entries = read_tree(store, base) if base is not None else {}
    for name, leaf in changes.leaves.items():
        if leaf is None:
            entries.pop(name, None)
        else:
            entries[name] = leaf
    for name, folder in changes.folders.items():
        now = entries.get(name)
        if now is not None and now.mode != FOLDER and changes.leaves.get(name) is not None:
            continue
        inside = _rebuild(store, now.oid if now is not None and now.mode == FOLDER else None, folder)
        if inside is not None:
            entries[name] = Entry(FOLDER, inside)
        elif now is not None and now.mode == FOLDER:
            del entries[name]
    if not entries:
        return None
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" * (item[1].mode == FOLDER))
    data = b"".join(b"%o %s\0%s" % (entry.mode, name, entry.oid) for name, entry in ordered)
    return _write(store, ObjectType.TREE, data)
