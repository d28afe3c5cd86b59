"""Where kb keeps the objects of uncommitted states: never in the user's own object store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from kb.git.failures import reading

_FANOUT = re.compile(r"[0-9a-f]{2}\Z")


def worktree_objects(home: Path, location: str) -> Path:
    """The object store below kb's home for the work trees of the repository at `location`."""
    return home / "worktrees" / hashlib.sha256(location.encode("utf-8")).hexdigest()[:16] / "objects"


def unreachable(objects: Path, trees: Iterable[str]) -> list[Path]:
    """Files of kb's object store `objects` that none of the trees reaches; nothing where it is absent.

    What a tree takes over unchanged is in the user's store, and is not looked at.
    """
    held = {path.parent.name + path.name: path for path in _loose(objects)}
    if held:
        with reading(objects):
            store = pygit2.Odb(str(objects))
            for tree in trees:
                _take(store, held, tree)
    return sorted(held.values())


def _loose(objects: Path) -> Iterator[Path]:
    if objects.is_dir():
        for folder in objects.iterdir():
            if _FANOUT.match(folder.name):
                yield from folder.iterdir()


def _take(store: pygit2.Odb, held: dict[str, Path], oid: str) -> None:
    """Takes an object, and what only it leads to, out of `held`."""
    if held.pop(oid, None) is None:
        return
    kind, data = store.read(pygit2.Oid(hex=oid))
    if kind == ObjectType.TREE:
        for name in _entries(data):
            _take(store, held, name)


def _entries(data: bytes) -> Iterator[str]:
    """Object ids of a tree's entries: each is its mode, its name, NUL, and twenty bytes."""
    at = 0
    while at < len(data):
        end = data.index(b"\0", at) + 21
        yield data[end - 20 : end].hex()
        at = end
