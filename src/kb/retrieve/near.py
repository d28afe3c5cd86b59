"""What is near a name that a snapshot does not have: for whoever remembers it by half, or spells it wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from kb.errors import NotFoundError
from kb.lexicon import analyze
from kb.retrieve.library import Opened
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.search import lexical
from kb.store.serving import terms_beginning

MOST_NEAR = 5
_ROUTE = re.compile(r"(?:[A-Za-z]+\s+)?/\S*")
_CANDIDATES = 50
_FEW = 3
_REPEATING = ("passage", "import", "package_dependency")
"""Kinds whose keys repeat the names of others."""
_COMPARED = 200
"""Names that are compared letter by letter: that takes up to a tenth of a millisecond each."""
_HALF_LIKE = 0.5
_LIKE = 0.7
"""How alike two words are (difflib's ratio) of which one may be the other, misspelled."""


def nothing_called(opened: Opened, text: str) -> NotFoundError:
    """The error for an unknown name, with the names of the snapshot that are nearest to it."""
    near = near_names(opened, text)
    hint = f"near matches: {', '.join(near)}" if near else "no name is near it: try search_knowledge"
    return NotFoundError(
        f"unknown target: nothing is called {text[:200]!r} in {opened.selected.row.name} "
        f"at {opened.snapshot.label[:12]}",
        hint=hint,
        near=near,
    )


def near_names(opened: Opened, text: str) -> list[str]:
    """Up to five keys and paths like the text, the most alike first.

    Those that end as it does, in any case; else what stands in what it names before its last word, and what
    its words, or those that they are misspelled from, are found by.
    """
    stored = opened.stored
    if _ROUTE.fullmatch(text):
        return _most_alike(text, _contracts(opened, text))
    below = stored.paths_under(text.strip("/"), _COMPARED)
    if below:
        return _most_alike(text, below)
    for ending in _endings(text):
        near = stored.keys_alike(ending, _CANDIDATES)
        if "." in ending or "/" in text:
            near += stored.paths_ending(ending, _CANDIDATES)
        if near:
            return _most_alike(text, near)
    if "/" in text and not text.startswith("/"):
        near = paths_beside(opened, text)
        if near:
            return near
    words = [word for word in re.split(r"[.:/ #\-]+", text) if len(word) > 1]
    if not words:
        return []
    found = [key for key in _found_by_words(opened, words) if _alike(words[-1], key)]
    return _most_alike(text, [*_inside(opened, text), *found])


def _alike(word: str, key: str) -> bool:
    """Whether a key is called much as the word, or has it inside."""
    word, name = word.lower(), re.split(r"[.:/>#]", key.lower())[-1]
    return word in key.lower() or difflib.SequenceMatcher(None, word, name).ratio() >= _HALF_LIKE


def _contracts(opened: Opened, text: str) -> list[str]:
    """Keys of contracts that share a segment of their path with the route, those that share most first."""
    kinds = ("contract",)
    listed = opened.kept(("of_kinds", kinds), lambda: opened.lists.of_kinds(kinds))
    wanted = set(re.findall(r"[\w-]+", text.lower()))
    shared = {
        one.logical_key: len(wanted & set(re.findall(r"[\w-]+", one.logical_key.lower()))) for one in listed
    }
    return sorted((key for key, count in shared.items() if count), key=lambda key: (-shared[key], key))[
        :_COMPARED
    ]


def _endings(text: str) -> list[str]:
    """The text from each of its separators on, the longest end first."""
    text = text.strip(".:/ ")
    starts = [0, *(found.end() for found in re.finditer(r"[.:/ ]+|->", text))]
    return list(dict.fromkeys(text[at:] for at in starts))[-8:]


def _inside(opened: Opened, text: str) -> list[str]:
    """Keys like the last word, of the files of what the text names without it: of `a.b` for `a.b.Wrong`."""
    outer, _, last = re.sub(r"^[\w-]+:", "", text).rpartition(".")
    if not outer:
        return []
    keys = [f"{kind}:{outer}" for kind in ("module", "symbol", "entity")]
    found = opened.stored.with_key(keys) or opened.stored.named(outer, _FEW)
    rows = opened.stored.by_pk(found[:_FEW])
    paths = dict.fromkeys(place.path for row in rows for place in row.places)
    held = [one for path in list(paths)[:_FEW] for one in opened.lists.in_file(path)]
    named: dict[str, list[str]] = {}
    for one in held:
        if one.kind not in _REPEATING:
            named.setdefault(one.logical_key.rpartition(".")[2].lower(), []).append(one.logical_key)
    alike = difflib.get_close_matches(last.lower(), named, n=10, cutoff=_HALF_LIKE)
    return [key for name in alike for key in named[name]]


def _most_alike(text: str, names: Iterable[str]) -> list[str]:
    """Up to five of the names: of a bare name those whose last part is most like it, the shortest first."""
    wanted = text.lower()
    bare = re.search(r"[.:/>#\s]", wanted) is None
    by_lower: dict[str, str] = {}
    for name in list(dict.fromkeys(names))[:_COMPARED]:
        by_lower.setdefault(name.lower(), name)
    compared = {name: re.split(r"[.:/>#]", name)[-1] if bare else name for name in by_lower}
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    alike: dict[str, float] = {}
    for part in set(compared.values()):
        matcher.set_seq1(part)
        alike[part] = matcher.ratio()
    order = sorted(compared, key=lambda name: (-alike[compared[name]], len(name), name))
    return [by_lower[name] for name in order[:MOST_NEAR]]


def _found_by_words(opened: Opened, words: list[str]) -> list[str]:
    """Keys of what the words are found by, each replaced by what it is spelled like where nothing has it."""
    view = opened.search_view()
    if view is None:
        return []
    legs = Legs(opened.connection, view)
    pieces = {word: analyze([word]).terms for word in words}
    terms = {term: 1 for of_word in pieces.values() for term in of_word}
    unknown = set(lexical.prepare(opened.connection, view, terms).unknown)
    asked: list[str] = []
    called: list[str] = []
    for word in words:
        if not unknown.issuperset(pieces[word]):
            asked.append(word)
            continue
        meant = _spelled_like(opened, word.lower())
        asked += meant
        called += [key for one in meant for key in opened.stored.keys_alike(one, MOST_NEAR)]
    if not asked:
        return []
    hits = rank(legs, " ".join(asked), SearchOptions(k=20, mode="lexical")).hits
    return called + [hit.document.logical_key for hit in hits if hit.document.kind not in _REPEATING]


def _spelled_like(opened: Opened, word: str) -> list[str]:
    """The words of the search index that are most like a word: alike at the beginning, and of like length."""
    known = terms_beginning(opened.connection, word[:2], (len(word) - 2, len(word) + 2), 2_000)
    return difflib.get_close_matches(word, known, n=3, cutoff=_LIKE)


def unknown_file(opened: Opened, path: str) -> NotFoundError:
    """The error for a path that the snapshot does not have, with the paths that are nearest to it."""
    near = paths_beside(opened, path)
    return NotFoundError(
        f"unknown file: {opened.selected.row.name} has no {path[:200]!r} at {opened.snapshot.label[:12]}",
        hint=f"near matches: {', '.join(near)}" if near else "paths are from the repository's root",
        near=near,
    )


def unknown_folder(opened: Opened, folder: str) -> NotFoundError:
    """The error for a file or folder that the snapshot does not have, with those that are nearest to it."""
    near = _folders_like(opened, folder)
    return NotFoundError(
        f"unknown folder: {opened.selected.row.name} has no file or folder {folder[:200]!r} "
        f"at {opened.snapshot.label[:12]}",
        hint=f"near matches: {', '.join(near)}" if near else "paths are from the repository's root",
        near=near,
    )


def _folders_like(opened: Opened, folder: str) -> list[str]:
    """Up to five folders and files: those called so elsewhere, else those of the nearest folder above it that there
    is which are spelled like it."""
    stored = opened.stored
    name = folder.rpartition("/")[2]
    found = stored.folders_called(name, _CANDIDATES) + stored.paths_ending(name, _CANDIDATES)
    if found:
        return _most_alike(folder, found)
    above = folder.rpartition("/")[0]
    while above and not stored.paths_under(above, 1):
        name, above = above.rpartition("/")[2], above.rpartition("/")[0]
    names: dict[str, str] = {}
    for one in [*stored.folders_in(above), *stored.paths_under(above, _COMPARED)]:
        last = one.rpartition("/")[2]
        names.setdefault(last.lower(), one)
    alike = difflib.get_close_matches(name.lower(), names, n=2 * MOST_NEAR, cutoff=_LIKE)
    held = [one for last in alike if has_path(opened, one := names[last])]
    return held[:MOST_NEAR]


def has_path(opened: Opened, path: str) -> bool:
    """Whether the snapshot has a file or a folder there; an empty path is all of it."""
    return not path or opened.stored.file(path) is not None or bool(opened.stored.paths_under(path, 1))


def unknown_name(opened: Opened, what: str, name: str, known: Iterable[str]) -> NotFoundError:
    """The error for a word that is none of those that a filter knows, with those it may be misspelled from."""
    there_are = sorted(set(known))
    near = difflib.get_close_matches(name.lower(), there_are, n=MOST_NEAR, cutoff=_HALF_LIKE)
    return NotFoundError(
        f"unknown {what}: {name[:100]!r} is none that is known, and nothing in {opened.selected.row.name} is of it",
        hint=f"near matches: {', '.join(near)}" if near else f"there are: {', '.join(there_are)[:1000]}",
        near=near,
    )


def paths_beside(opened: Opened, path: str) -> list[str]:
    """Up to five paths: of files called so elsewhere, else of what lies in its folder, or in one above it."""
    stored = opened.stored
    folder, _, name = path.strip("/").rpartition("/")
    found = stored.paths_ending(name, _CANDIDATES) if name else []
    if not found:
        found = stored.paths_under(path.strip("/"), _CANDIDATES)
    while not found:
        found = stored.paths_under(folder, _COMPARED)
        if not folder:
            break
        folder = folder.rpartition("/")[0]
    return _most_alike(path, found)
