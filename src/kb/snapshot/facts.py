"""The rest of the snapshot as linking asks for it, answered from the database."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from kb.extract.answers import SEPARATOR
from kb.extract.layout import FORMS, ROOT_FILES, may_be_python, stem_of
from kb.model.artifacts import LookupRow
from kb.model.spans import FactRow, SpanKey
from kb.store.facts import FileAt, LineageFacts
from kb.store.keys import stored_key
from kb.structure.facts import MODULE_SOURCE, ModuleFacts, decode_payload, decode_span_table

PRELOAD_BYTES = 48 * 1024 * 1024
"""Compressed module facts up to this size are read at once; beyond, file by file as they are asked for."""
_ROWS = 512
"""Changed files whose rows are kept; of more files they are read again when they are asked for again."""
_KEYS = 20_000
"""Rows of a source's inverse keys up to which they are read at once, where the state is."""
_DECODED = 4096
"""Decoded module facts that are kept."""


class StoredFacts:
    """`kb.extract`'s `FactStore` over one ordinal of a lineage.

    With `preload` the paths, and module facts up to `PRELOAD_BYTES`, are read at once: right for linking
    a whole snapshot. Without it every question is a query of its own: right for a small difference.
    """

    def __init__(self, facts: LineageFacts, *, preload: bool) -> None:
        self._facts = facts
        self._files: dict[str, FileAt | None] = {}
        self._complete = preload
        self._children: dict[str, set[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        self._folders: dict[str, bool] = {}
        self._listed: dict[str, list[str]] = {}
        self._ending: dict[str, list[str]] = {}
        self._raw: dict[tuple[int, str], tuple[bytes, bytes] | None] = {}
        self._decoded: OrderedDict[str, tuple[ModuleFacts, list[SpanKey]]] = OrderedDict()
        self._with_key: dict[tuple[str, str], list[str]] = {}
        self._keys: dict[str, dict[str, list[str]] | None] = {}
        self._rows: dict[str, list[FactRow]] = {}
        if preload:
            self._load()

    def _load(self) -> None:
        for file in self._facts.files():
            self._files[file.path] = file
            self._by_name.setdefault(_last_name(file.path), []).append(file.path)
            self._add_to_folder(file.path)
        if self._facts.bytes_of(MODULE_SOURCE) <= PRELOAD_BYTES:
            self._fetch((file.parse_id, MODULE_SOURCE) for file in self._files.values() if file)

    def _add_to_folder(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        while folder not in self._children:
            self._children[folder] = {name}
            if not folder:
                return
            folder, _, name = folder.rpartition("/")
            name += "/"
        self._children[folder].add(name)

    def _fetch(self, wanted: Iterable[tuple[int | None, str]]) -> None:
        """Reads the rows of these (parse id, source), each source's at once with the others'."""
        missing = {
            (parse_id, source)
            for parse_id, source in wanted
            if parse_id is not None and (parse_id, source) not in self._raw
        }
        if missing:
            self._raw |= dict.fromkeys(missing)
            self._raw |= self._facts.facts(
                {parse_id for parse_id, _ in missing}, {source for _, source in missing}
            )

    def prefetch(self, paths: Collection[str], sources: Iterable[str]) -> None:
        """Reads the fact rows of some files in one query, before they are asked for one by one."""
        self.look_up(paths)
        wanted = list(sources)
        self._fetch(
            (file.parse_id, source)
            for path in paths
            if (file := self.file(path)) is not None
            for source in wanted
        )

    def prefetch_rows(self, paths: Collection[str]) -> None:
        """As `prefetch`, for the `fact_rows` of as many files as are kept."""
        self.look_up(paths)
        parses = {
            path: file.parse_id
            for path in islice(paths, _ROWS)
            if (file := self.file(path)) is not None and file.parse_id is not None
        }
        rows = self._facts.rows_of(parses.values())
        for path, parse_id in parses.items():
            self._keep_rows(path, parse_id, rows[parse_id])

    def _keep_rows(self, path: str, parse_id: int, rows: list[FactRow]) -> None:
        if len(self._rows) < _ROWS:
            self._rows[path] = rows
            self._raw |= {(parse_id, row.source): (row.payload, row.spans) for row in rows}

    def foresee(self, lookups: Iterable[LookupRow]) -> None:
        """Reads what these look-ups ask in a few queries, before it is asked one by one.

        What linking a file asked last time it mostly asks again.
        """
        paths: set[str] = set()
        rows: dict[str, set[str]] = defaultdict(set)
        suffixes: set[str] = set()
        keys: set[tuple[str, str]] = set()
        inverse: set[tuple[str, str]] = set()
        for _, _, kind, key, _ in lookups:
            first, _, second = key.partition(SEPARATOR)
            if kind in ("inverse", "carried"):
                keys.add((first, second))
                if kind == "inverse":
                    inverse.add((first, second))
            elif kind == "fact":
                rows[second].add(first)
            elif kind in ("exists", "layout"):
                paths.add(first)
            elif kind == "module":
                paths.update(first + form for form in FORMS)
            elif kind == "defining":
                suffixes.update(first + form for form in FORMS)
            elif kind != "modules":
                rows[MODULE_SOURCE].add(first)
        self._foresee_keys(keys, inverse, rows)
        self._foresee_suffixes(suffixes)
        self.look_up(paths.union(*rows.values()))
        self._fetch(
            (file.parse_id, source)
            for source, carriers in rows.items()
            for path in carriers
            if (file := self.file(path)) is not None
        )

    def _foresee_keys(
        self, keys: set[tuple[str, str]], inverse: set[tuple[str, str]], rows: dict[str, set[str]]
    ) -> None:
        """Who carries the keys; adds the rows that are part of the answer where it is an inverse one."""
        if not self._complete:
            self._with_key |= self._facts.paths_with_keys(keys - self._with_key.keys())
        for source, key in inverse:
            rows[source].update(self.paths_with_key(source, key))

    def _foresee_suffixes(self, suffixes: set[str]) -> None:
        if not self._complete:
            self._ending |= self._facts.paths_ending_each(suffixes - self._ending.keys())

    def forget(self, source: str) -> None:
        """Drops what was read of a fact source that is not asked across files."""
        self._raw = {key: row for key, row in self._raw.items() if key[1] != source}

    def file(self, path: str) -> FileAt | None:
        """The file at `path` with its parse, None if the snapshot has none."""
        if path not in self._files:
            self.look_up([path])
        return self._files.get(path)

    def look_up(self, paths: Iterable[str]) -> None:
        """Reads which of the paths there are files at, in one query, before they are asked for one by one."""
        if self._complete:
            return
        # Whoever asks for one form of a module asks for the others next, and for the packages it is in.
        asked = {form for path in paths for form in _forms(path) if form not in self._files}
        if asked:
            self._files |= dict.fromkeys(asked)
            self._files |= {file.path: file for file in self._facts.files_at(asked)}

    def has_path(self, path: str) -> bool:
        """Whether the snapshot has a file at `path`."""
        return self.file(path) is not None

    def has_folder(self, path: str) -> bool:
        """Whether the snapshot has a file somewhere below the folder `path`."""
        if self._complete:
            return path in self._children
        if path not in self._folders:
            self._folders[path] = self._facts.has_folder(path)
        return self._folders[path]

    def children(self, folder: str) -> list[str]:
        """Names directly below `folder`, sorted; folders end with a slash."""
        if self._complete:
            return sorted(self._children.get(folder, ()))
        if folder not in self._listed:
            self._listed[folder] = self._facts.children(folder)
        return self._listed[folder]

    def paths_ending(self, suffix: str) -> list[str]:
        """Paths that are `suffix` or end with `/` and `suffix`, sorted."""
        if not self._complete:
            if suffix not in self._ending:
                self._ending[suffix] = self._facts.paths_ending(suffix)
            return self._ending[suffix]
        end = "/" + suffix
        same_name = self._by_name.get(_last_name(suffix), ())
        return [path for path in same_name if path == suffix or path.endswith(end)]

    def dialect(self, path: str) -> str | None:
        """The dialect that the file was parsed under, None where it was not."""
        file = self.file(path)
        return None if file is None else file.dialect

    def fact(self, path: str, source: str) -> tuple[bytes, bytes] | None:
        """(payload, span table) of the file's fact row of `source`."""
        file = self.file(path)
        if file is None or file.parse_id is None:
            return None
        self._fetch([(file.parse_id, source)])
        return self._raw[file.parse_id, source]

    def fact_rows(self, path: str) -> list[FactRow]:
        """Every fact row of the file that the recipe wants, with its inverse keys."""
        file = self.file(path)
        if file is None or file.parse_id is None:
            return []
        rows = self._rows.get(path)
        if rows is None:
            rows = self._facts.rows_of([file.parse_id])[file.parse_id]
            self._keep_rows(path, file.parse_id, rows)
        return rows

    def module_facts(self, path: str) -> tuple[ModuleFacts, list[SpanKey]] | None:
        """The file's module facts and their span table."""
        known = self._decoded.get(path)
        if known is not None:
            self._decoded.move_to_end(path)
            return known
        row = self.fact(path, MODULE_SOURCE)
        if row is None:
            return None
        decoded = (decode_payload(row[0], ModuleFacts), decode_span_table(row[1]))
        self._decoded[path] = decoded
        if len(self._decoded) > _DECODED:
            self._decoded.popitem(last=False)
        return decoded

    def paths_with_key(self, source: str, key: str) -> list[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted by their bytes."""
        if self._complete:
            if source not in self._keys:
                self._keys[source] = self._facts.keys(source, _KEYS)
            known = self._keys[source]
            if known is not None:
                return known.get(stored_key(key), [])
        if (source, key) not in self._with_key:
            self._with_key[source, key] = self._facts.paths_with_key(source, key)
        return self._with_key[source, key]


def _forms(path: str) -> Iterator[str]:
    yield path
    if may_be_python(path):
        yield from (stem_of(path) + end for end in FORMS)
        folder = path.rpartition("/")[0]
        while folder:
            yield from (f"{folder}/{name}" for name in ROOT_FILES)
            folder = folder.rpartition("/")[0]


def _last_name(path: str) -> str:
    """What suffixes are filed under: the name, with its folder for an `__init__` (there are so many)."""
    folder, _, name = path.rpartition("/")
    if name.startswith("__init__.") and folder:
        return f"{folder.rpartition('/')[2]}/{name}"
    return name
