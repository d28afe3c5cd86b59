"""Ancestry and history: who comes before whom, and how far apart.

A shallow clone ends where its commits end; nothing here fails there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

import pygit2
from pygit2.enums import SortMode

from kb.git.objects import ObjectStore
from kb.git.revisions import commit_info
from kb.model.commits import CommitInfo


def is_ancestor(store: ObjectStore, ancestor: str, descendant: str) -> bool:
    """Whether `ancestor` is `descendant` or comes before it."""
    return ancestor == descendant or store.handle.descendant_of(descendant, ancestor)


def distance(store: ObjectStore, old: str, new: str) -> int:
    """How many commits `new` has that `old` has not: how far `old` is behind."""
    return 0 if old == new else store.handle.ahead_behind(new, old)[0]


def nearest_ancestor(store: ObjectStore, sha: str, candidates: Collection[str]) -> str | None:
    """The candidate that is `sha` or the fewest parent steps before it; None if none comes before it.

    Among equally near ones the first parent's line wins. Reads no further than the answer.
    """
    wanted = frozenset(candidates)
    if not wanted:
        return None
    pending, seen = deque([sha]), {sha}
    while pending:
        current = pending.popleft()
        if current in wanted:
            return current
        commit = store.commit(current)
        if commit is None:
            continue
        for parent in map(str, commit.parent_ids):
            if parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return None


def lines_of_descent(store: ObjectStore, tip: str, among: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Those of `among` that are `tip` or come before it, children first, each with the nearest before it.

    One has several nearest ones where a merge stands between; those that come before another of them are
    left out. Commits of other branches are not there.
    """
    wanted = frozenset(among)
    found: dict[str, list[str]] = {}
    below: dict[str, dict[str, None]] = {}  # commit -> those wanted whose nearest one it leads to
    for commit in store.handle.walk(tip, SortMode.TOPOLOGICAL):
        sha = str(commit.id)
        led = below.pop(sha, {})
        if sha in wanted:
            for younger in led:
                found[younger].append(sha)
            found[sha] = []
            led = {sha: None}
            if len(found) == len(wanted):
                break  # what comes before all of them leads to none
        for parent in map(str, commit.parent_ids):
            below.setdefault(parent, {}).update(led)
    return _nearest_only(found)


def _nearest_only(found: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """The same without commits that come before another one of their list."""
    bit = {sha: 1 << number for number, sha in enumerate(found)}
    before: dict[str, int] = {}
    for sha in reversed(found):
        before[sha] = 0
        for older in found[sha]:
            before[sha] |= before[older] | bit[older]
    return {
        sha: tuple(one for one in older if not any(before[other] & bit[one] for other in older))
        for sha, older in found.items()
    }


def log(
    store: ObjectStore, tip: str, since: str | None = None, *, first_parent: bool = False
) -> Iterator[CommitInfo]:
    """The commits of `tip` that `since` has not (all without it), oldest first, parents before children."""
    walker = store.handle.walk(tip, SortMode.TOPOLOGICAL | SortMode.REVERSE)
    if first_parent:
        walker.simplify_first_parent()
    if since is not None:
        walker.hide(since)
    for commit in walker:
        yield commit_info(commit)


def branches(store: ObjectStore) -> dict[str, str]:
    """Local branches and their commits, by name; a branch without a commit is left out."""
    return _commits_below(store, "refs/heads/")


def tags(store: ObjectStore) -> dict[str, str]:
    """Tags and the commits they stand for, by name; tags of trees and blobs are left out."""
    return _commits_below(store, "refs/tags/")


def _commits_below(store: ObjectStore, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted(store.handle.raw_listall_references()):
        if not name.startswith(prefix.encode()):
            continue
        try:
            reference = store.handle.lookup_reference(name.decode("utf-8", "surrogateescape"))
            commit = reference.peel(pygit2.Commit)
        except (pygit2.GitError, KeyError, ValueError):
            continue
        found[name[len(prefix) :].decode("utf-8", "backslashreplace")] = str(commit.id)
    return found
