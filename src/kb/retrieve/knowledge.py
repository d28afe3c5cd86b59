"""The use case `get_knowledge`: everything about a key, symbol, module, file or route, nearest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb.retrieve.kinds import kinds_note
from kb.retrieve.library import Library, Opened
from kb.retrieve.pages import Paging, UnitsAnswer, opened_page, units_page
from kb.retrieve.provenance import file_note
from kb.retrieve.targets import MANY, Target, find_target
from kb.store.serving import HeldInFile

_FIRST = ("contract", "entity", "event", "setting", "command", "package_surface", "module", "symbol")
_LAST = ("import", "passage")
_SCOPED = ("module", "package", "symbol", "entity")
"""Kinds of key whose members are knowledge about them."""


def get_knowledge(
    library: Library, target: str, *, repo: str | None, sha: str | None, kinds: Sequence[str], paging: Paging
) -> UnitsAnswer:
    """The units about a target: what it names, what stands on the same lines, then what is inside it.

    Raises:
        NotFoundError: nothing is called so; the nearest names are in the hint.
    """
    question = ("knowledge", target, tuple(sorted(kinds)))
    with opened_page(library, repo, sha, paging.cursor, *question) as (opened, start, digest):
        found, order = opened.kept(question, lambda: _ranked(opened, target, kinds), lambda one: len(one[1]))
        notes = [MANY] if found.more else []
        if not order:
            unread = file_note(opened, found.path) if found.path else None
            note = f"nothing there: {unread or 'the target exists, and no unit of these kinds stands there'}"
            if kinds and not unread:
                there = opened.kept((*question, "kinds"), lambda: _kinds(opened, target))
                note += f"; of these do: {', '.join(there)}" if there else ""
            notes = [note]
        else:
            notes += kinds_note(kinds, opened)
        said = "; ".join(notes) or None
        at = (found.path, found.start) if found.matched == "line" else None
        return units_page(opened, order, start, digest, paging, matched=found.matched, note=said, at=at)


def _ranked(opened: Opened, target: str, kinds: Sequence[str]) -> tuple[Target, list[int]]:
    found = find_target(opened, target)
    order = list(found.artifacts)
    if found.matched == "file":
        order = _by_kind(opened.lists.in_file(found.path))
    elif found.matched in ("key", "name", "route") and order:
        order += opened.lists.beside(order[:50])
        order += _inside(opened, found.artifacts[:50])
    order = list(dict.fromkeys(order))
    if kinds:
        wanted = set(kinds)
        named = opened.lists.keys_of(order)
        order = [pk for pk in order if named[pk][0] in wanted]
    return found, order


def _kinds(opened: Opened, target: str) -> list[str]:
    """The kinds of what there is about a target."""
    _, order = _ranked(opened, target, ())
    return sorted({kind for kind, _ in opened.lists.keys_of(order).values()})


def _inside(opened: Opened, artifacts: Sequence[int]) -> list[int]:
    """The artifacts of the target's own files whose key lies below the target's dotted name."""
    keys = opened.lists.keys_of(artifacts)
    names = {key.partition(":")[2] for kind, key in keys.values() if key.partition(":")[0] in _SCOPED}
    whole = {key.partition(":")[2] for _, key in keys.values() if key.partition(":")[0] == "module"}
    if not names:
        return []
    rows = opened.stored.by_pk(list(artifacts))
    paths = dict.fromkeys(place.path for row in rows for place in row.places)
    found: list[HeldInFile] = []
    for path in list(paths)[:20]:
        found += [one for one in opened.lists.in_file(path) if whole or _below(one.logical_key, names)]
    return _by_kind(found)


def _below(key: str, names: Iterable[str]) -> bool:
    rest = key.partition(":")[2]
    return any(rest == name or rest.startswith((f"{name}.", f"{name}->", f"{name}#")) for name in names)


def _by_kind(found: Sequence[HeldInFile]) -> list[int]:
    """What a reader asks for first, first: contracts and shapes before imports and passages."""

    def rank(one: HeldInFile) -> tuple[int, str]:
        if one.kind in _FIRST:
            return _FIRST.index(one.kind), one.logical_key
        return (len(_FIRST) + (_LAST.index(one.kind) + 1 if one.kind in _LAST else 0)), one.logical_key

    return [one.artifact_pk for one in sorted(found, key=rank)]
