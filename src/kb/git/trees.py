"""Trees: all files of one, and the difference of two at the cost of what differs.

Trees are read from their raw form: names are bytes there, and a name may be any bytes.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import NamedTuple

import pygit2

from kb.errors import RepositoryError
from kb.git.objects import ObjectStore
from kb.git.paths import render_name
from kb.model.commits import FileChange
from kb.model.files import TreeFile

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git knows the tree without entries by heart and does not store it."""

FILE, EXECUTABLE, SYMLINK, SUBMODULE, FOLDER = 0o100644, 0o100755, 0o120000, 0o160000, 0o040000


class Entry(NamedTuple):
    """One entry of a tree, its mode in the form git writes today."""

    mode: int
    oid: bytes


Entries = dict[bytes, Entry]


def canonical_mode(mode: int) -> int:
    """Git's reading of a mode that an old or foreign writer left in a tree."""
    if stat.S_ISREG(mode):
        return EXECUTABLE if mode & 0o100 else FILE
    if stat.S_ISLNK(mode):
        return SYMLINK
    return FOLDER if stat.S_ISDIR(mode) else SUBMODULE


def read_tree(store: ObjectStore, oid: bytes) -> Entries:
    """The entries of a tree in git's order; of entries with one name (only a forged tree has them) the last."""
    data = b"" if oid.hex() == EMPTY_TREE else store.read(pygit2.Oid(raw=oid))
    entries: Entries = {}
    at = 0
    try:
        while at < len(data):
            space = data.index(b" ", at)
            end = data.index(b"\0", space)
            entries[data[space + 1 : end]] = Entry(
                canonical_mode(int(data[at:space], 8)), data[end + 1 : end + 21]
            )
            at = end + 21
    except ValueError as error:
        raise RepositoryError(
            f"tree {oid.hex()} of the repository {store.git_dir} is corrupt",
            hint=f"check it with: git -C {store.git_dir} fsck",
        ) from error
    return entries


def _file(store: ObjectStore, path: str, entry: Entry, decodable: bool) -> TreeFile:
    if entry.mode == SUBMODULE:
        return TreeFile(path, entry.oid.hex(), entry.mode, 0, decodable)
    oid = pygit2.Oid(raw=entry.oid)
    size = store.size(oid)
    return TreeFile(path, str(oid), entry.mode, size or 0, decodable, missing=size is None)


class _Folder(NamedTuple):
    prefix: str
    decodable: bool
    entries: Iterator[tuple[bytes, Entry]]


def walk(store: ObjectStore, tree: bytes, prefix: str = "", decodable: bool = True) -> Iterator[TreeFile]:
    """Every file below a tree in git's order, one at a time: memory grows with depth only."""
    stack = [_Folder(prefix, decodable, iter(read_tree(store, tree).items()))]
    while stack:
        folder = stack[-1]
        found = next(folder.entries, None)
        if found is None:
            stack.pop()
            continue
        name, entry = found
        text, faithful = render_name(name)
        path, faithful = folder.prefix + text, faithful and folder.decodable
        if entry.mode == FOLDER:
            stack.append(_Folder(path + "/", faithful, iter(read_tree(store, entry.oid).items())))
        else:
            yield _file(store, path, entry, faithful)


def compare(store: ObjectStore, old_tree: bytes, new_tree: bytes) -> list[FileChange]:
    """The paths that differ between two trees, sorted; equal subtrees are never opened."""
    changes: list[FileChange] = []
    pending = [("", True, old_tree, new_tree)]
    while pending:
        prefix, decodable, old, new = pending.pop()
        if old == new:
            continue
        before, after = read_tree(store, old), read_tree(store, new)
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            text, faithful = render_name(name)
            path, faithful = prefix + text, faithful and decodable
            if was is not None and now is not None and was.mode == now.mode == FOLDER:
                pending.append((path + "/", faithful, was.oid, now.oid))
            else:
                changes.extend(_replacement(store, path, faithful, was, now))
    changes.sort(key=lambda change: change.path)
    return changes


def _replacement(
    store: ObjectStore, path: str, decodable: bool, was: Entry | None, now: Entry | None
) -> Iterator[FileChange]:
    """One name that is something else now: a file, a folder, or nothing, on either side."""
    old = _file(store, path, was, decodable) if was and was.mode != FOLDER else None
    new = _file(store, path, now, decodable) if now and now.mode != FOLDER else None
    if old or new:
        yield FileChange(path, old, new)
    if was and was.mode == FOLDER:
        for file in walk(store, was.oid, path + "/", decodable):
            yield FileChange(file.path, file, None)
    if now and now.mode == FOLDER:
        for file in walk(store, now.oid, path + "/", decodable):
            yield FileChange(file.path, None, file)


def find(store: ObjectStore, tree: bytes, path: str) -> TreeFile | None:
    """The file at a path as kb shows it (escapes included), reading only the trees on the way."""
    decodable = True
    names = path.split("/")
    for depth, name in enumerate(names):
        found = _by_shown_name(read_tree(store, tree), name)
        if found is None:
            return None
        entry, faithful = found
        decodable = decodable and faithful
        if depth == len(names) - 1:
            return None if entry.mode == FOLDER else _file(store, path, entry, decodable)
        if entry.mode != FOLDER:
            return None
        tree = entry.oid
    return None


def _by_shown_name(entries: Entries, name: str) -> tuple[Entry, bool] | None:
    entry = entries.get(name.encode("utf-8", "surrogatepass"))
    if entry is not None:
        return entry, True
    if "\\" in name:
        for raw, candidate in entries.items():
            if render_name(raw)[0] == name:
                return candidate, False
    return None
