"""What names and places say beside the words: the query names a definition, a file, or a part of one.

The weights were chosen on one half of the localisation instances (docs/search.md) and checked on the
other half and on questions of another project.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from kb.store.search.reading import Document

NAMED = 0.3
"""For a definition that the query names in a way that only names are written: `get_user`, `HTTPError`."""
NAMED_PLAIN = 0.15
"""For one whose name is also a plain word of the query."""
FILE_NAMED = 0.1
"""For a unit of a file whose name is a word of the query."""
FILE_MENTIONED = 0.3
"""For a unit of a file whose path or dotted module stands in the query."""
COHERENCE = 0.2
"""What each of the next best units of the same file adds to a unit of its file."""
_COHERENT = 5

_WORD = re.compile(r"[^\W\d]\w*")
_IN_CODE = re.compile(r"`([^\W\d]\w*)`|([^\W\d]\w*)\(|\.([^\W\d]\w*)")
_SHAPED = re.compile(r"\w_\w|[a-z][A-Z]|[A-Z]{2,}[a-z]|\d")
_NO_NAME = re.compile(r"[#/\s>]")
_SHORTEST = 3


class Mentions:
    """The names that a query mentions."""

    def __init__(self, query: str) -> None:
        self._text = query
        self._words = set(_WORD.findall(query))
        self._lower = {word.lower() for word in self._words}
        self._in_code = {name for groups in _IN_CODE.findall(query) for name in groups if name}
        self._files: dict[str, float] = {}

    def evidence(self, document: Document) -> float:
        """What the document's own name and its file's name add to its score."""
        of_file = self._files.get(document.path)
        if of_file is None:
            of_file = self._files[document.path] = self._of_file(document.path)
        return self._of_name(own_name(document.logical_key, document.path)) + of_file

    def _of_name(self, name: str) -> float:
        if len(name) < _SHORTEST or name not in self._words:
            return 0.0
        sure = name in self._in_code or name[0].isupper() or _SHAPED.search(name) is not None
        return NAMED if sure else NAMED_PLAIN

    def _of_file(self, path: str) -> float:
        stem, shown, module = _file_names(path)
        named = FILE_NAMED if stem in self._lower else 0.0
        mentioned = shown in self._text or (module != "" and module in self._text)
        return named + (FILE_MENTIONED if mentioned else 0.0)


@lru_cache(maxsize=1 << 16)
def _file_names(path: str) -> tuple[str, str, str]:
    """What a file is called in a question: its stem in lower case, its path, its dotted module ("" without dots)."""
    shown = path.removeprefix("src/")
    module = shown.rpartition(".")[0].replace("/", ".")
    return file_stem(path).lower(), shown, module if "." in module else ""


@lru_cache(maxsize=1 << 16)
def own_name(logical_key: str, path: str) -> str:
    """The last part of a definition's dotted key; empty for what is no definition (modules, prose...)."""
    name = logical_key.partition(":")[2].partition("~")[0]
    if "." not in name or _NO_NAME.search(name):
        return ""
    last = name.rpartition(".")[2]
    return "" if last == file_stem(path) else last


def file_stem(path: str) -> str:
    """The file's name without its suffix; for a package's `__init__` the package's."""
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return folder.rpartition("/")[2] if stem == "__init__" else stem


def coherence(documents: Mapping[int, Document], scores: Mapping[int, float]) -> dict[int, float]:
    """What the other units of its file add to each document: a fifth of each of the five next best.

    A definition that is there in several forms (symbol, source) counts once.
    """
    files: dict[str, dict[str, float]] = defaultdict(dict)
    names = {doc: document.logical_key.partition(":")[2] for doc, document in documents.items()}
    for doc, document in documents.items():
        held = files[document.path]
        name = names[doc]
        held[name] = max(held.get(name, 0.0), scores[doc])
    best = {
        path: sorted(held.items(), key=lambda item: -item[1])[: _COHERENT + 1]
        for path, held in files.items()
        if len(held) > 1
    }
    added = dict.fromkeys(documents, 0.0)
    for doc, document in documents.items():
        if document.path in best:
            others = [score for name, score in best[document.path] if name != names[doc]]
            added[doc] = COHERENCE * sum(others[:_COHERENT])
    return added
