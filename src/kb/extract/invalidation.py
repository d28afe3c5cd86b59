"""What is linked again after some files changed: homes with other facts, and those with other answers.

The rule: a file is linked again by an extractor exactly if what the file says to it changed (its
`module` facts, its own fact row, its dialect), or if one of the look-ups that the extractor recorded
there has another answer now. This module finds those look-ups from the changed files alone, without
going through what was asked (docs/extractors.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kb.extract.answers import SEPARATOR, Answers
from kb.extract.api import Extractor
from kb.extract.bindings import ABSENT
from kb.extract.factstore import FactStore
from kb.extract.layout import FORMS, Layout, is_python, join, may_be_python, parent, stem_of
from kb.model.spans import FactRow
from kb.structure.facts import MODULE_SOURCE

CHANGED = b"\xff" * 16
"""Stands for the digest of an answer that has certainly changed where computing it would be dear."""


class ChangedAnswer(NamedTuple):
    """A look-up whose answer is not what it was."""

    kind: str
    key: str
    answer: bytes
    """The digest now; `CHANGED` where it is only known to be another one."""


def changed_answers(
    changed: Iterable[str], before: FactStore, after: FactStore, roots: tuple[str, ...] = ()
) -> list[ChangedAnswer]:
    """Every look-up with another answer in `after` than in `before`, sorted.

    Args:
        changed: paths that were added, removed, or have other contents or another dialect.
        before: the state that the recorded look-ups were answered from.
        after: the new state.
        roots: configured roots of both.
    """
    return sorted(set(_Difference(before, after, roots).find(sorted(set(changed)))))


def changed_homes(
    changed: Iterable[str], before: FactStore, after: FactStore, extractors: Sequence[Extractor]
) -> set[tuple[str, str]]:
    """Those (path, extractor) of the changed files to which the file says something else than before.

    A fact row tells spans by identity and occurrence, not by line: a comment, or a file's new layout,
    makes a new parse with the same rows, and everything that stands on it stands as it did.
    """
    homes: set[tuple[str, str]] = set()
    for path in set(changed):
        dialect = after.dialect(path)
        if dialect is None:
            continue
        fresh = before.dialect(path) != dialect
        other = set() if fresh else _differing_sources(path, before, after)
        for extractor in extractors:
            if dialect in extractor.dialects and (fresh or other & {MODULE_SOURCE, extractor.id}):
                homes.add((path, extractor.id))
    return homes


def _differing_sources(path: str, before: FactStore, after: FactStore) -> set[str]:
    """Fact sources whose row of the file is not the same in both states."""
    old = {row.source: _contents(row) for row in before.fact_rows(path)}
    new = {row.source: _contents(row) for row in after.fact_rows(path)}
    return {source for source in old.keys() | new.keys() if old.get(source) != new.get(source)}


class _Difference:
    def __init__(self, before: FactStore, after: FactStore, roots: tuple[str, ...]) -> None:
        self._before = Answers(before, Layout(before, roots))
        self._after = Answers(after, Layout(after, roots))
        self._states = (self._before, self._after)

    def find(self, changed: list[str]) -> Iterator[ChangedAnswer]:
        moved = [
            path for path in changed if self._before.facts.has_path(path) != self._after.facts.has_path(path)
        ]
        for path in changed:
            yield from self._of_names(path)
            yield from self._of_rows(path)
        for kind, key in sorted(self._of_paths(moved)):
            now = self._after.digest(kind, key)
            if now != self._before.digest(kind, key):
                yield ChangedAnswer(kind, key, now)

    def _of_names(self, path: str) -> Iterator[ChangedAnswer]:
        """Look-ups that the `module` facts of the file answer."""
        was, now = _said(self._before, path), _said(self._after, path)
        for kind, name in was.keys() | now.keys():
            answer = now.get((kind, name), ABSENT)
            if answer != was.get((kind, name), ABSENT):
                whole = kind in ("stars", "exports", "names")
                yield ChangedAnswer(kind, path if whole else path + SEPARATOR + name, answer)

    def _of_rows(self, path: str) -> Iterator[ChangedAnswer]:
        """Look-ups that the file's fact rows answer, or answer together with other files' rows."""
        was = {row.source: row for row in self._before.facts.fact_rows(path)}
        now = {row.source: row for row in self._after.facts.fact_rows(path)}
        for source in was.keys() | now.keys():
            old, new = was.get(source), now.get(source)
            old_keys, new_keys = _keys(old), _keys(new)
            same_row = _contents(old) == _contents(new)
            if not same_row:
                key = path + SEPARATOR + source
                yield ChangedAnswer("fact", key, self._after.digest("fact", key))
            for name in old_keys ^ new_keys if same_row else old_keys | new_keys:
                yield ChangedAnswer("inverse", source + SEPARATOR + name, CHANGED)
            for name in old_keys ^ new_keys:
                key = source + SEPARATOR + name
                answer = self._after.digest("carried", key)
                if answer != self._before.digest("carried", key):
                    yield ChangedAnswer("carried", key, answer)

    def _of_paths(self, moved: list[str]) -> set[tuple[str, str]]:
        """Look-ups that may have changed because files came or went: a superset, by their paths."""
        asked = {("exists", path) for path in moved}
        for path in moved:
            folder = parent(path)
            # A folder is listed for the modules in it, and for the packages in it, which are one level further down.
            asked |= {("modules", f) for f in (folder, parent(folder), parent(parent(folder)))}
        named = {path for path in moved if may_be_python(path)}
        for path in moved:
            named |= self._renamed_with(path)
        for path in list(named):
            named |= self._colliding(path)
        for path in named:
            stem = stem_of(path)
            asked |= {("layout", path), ("module", stem)}
            parts = stem.split("/")
            asked |= {("module", "/".join(parts[:end])) for end in range(1, len(parts))}
            asked |= {("defining", "/".join(parts[start:])) for start in range(len(parts))}
        return asked

    def _renamed_with(self, path: str) -> set[str]:
        """Python files whose dotted name may start elsewhere now that the file came or went."""
        folder = parent(path)
        stem = stem_of(path)
        found = {stem + form for form in FORMS if is_python(path)}
        for seen in {folder, parent(folder)}:
            if self._before.layout.traits(seen) != self._after.layout.traits(seen):
                for state in self._states:
                    found.update(below(state.facts, seen))
        return found

    def _colliding(self, path: str) -> set[str]:
        """Python files whose key prefix may change because another root defines their name, or no more."""
        found: set[str] = set()
        for state in self._states:
            if not state.facts.has_path(path):
                continue
            name = state.layout.name(path)
            stem = stem_of(path)
            relative = stem[len(name.root) + 1 :] if name.root else stem
            for either in self._states:
                for form in FORMS:
                    found.update(either.facts.paths_ending(relative + form))
            top = relative.partition("/")[0]
            if self._before.digest("defining", top) != self._after.digest("defining", top):
                for either in self._states:
                    for root in either.layout.defining(top):
                        found.update(below(either.facts, join(root, top)))
        return found


def below(facts: FactStore, folder: str) -> Iterator[str]:
    """Python files below a folder."""
    for name in facts.children(folder):
        if name.endswith("/"):
            yield from below(facts, join(folder, name[:-1]))
        elif may_be_python(name):
            yield join(folder, name)


def _said(state: Answers, path: str) -> dict[tuple[str, str], bytes]:
    table = state.table(path)
    return {} if table is None else {(kind, name): digest for kind, name, digest in table.all_digests()}


def _keys(row: FactRow | None) -> set[str]:
    return set() if row is None else set(row.keys)


def _contents(row: FactRow | None) -> tuple[bytes, bytes] | None:
    return None if row is None else (row.payload, row.spans)
