"""Where linking reads from: the paths and facts of one snapshot, behind one small protocol."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kb.model.spans import FactRow, ParsedBlob, SpanKey
from kb.structure.facts import MODULE_SOURCE, ModuleFacts, decode_payload, decode_span_table

_DECODED = 1024


class FactStore(Protocol):
    """The paths and facts of one state of a repository. Paths are relative, `/`-separated."""

    def has_path(self, path: str) -> bool:
        """Whether the state has a file at `path`."""
        ...

    def has_folder(self, path: str) -> bool:
        """Whether the state has a file somewhere below the folder `path` (no trailing slash, not "")."""
        ...

    def children(self, folder: str) -> Sequence[str]:
        """Names directly below `folder` ("" for the top), sorted; folders end with a slash."""
        ...

    def paths_ending(self, suffix: str) -> Sequence[str]:
        """Paths that are `suffix` or end with `/` and `suffix`, sorted; `suffix` holds a file's name."""
        ...

    def dialect(self, path: str) -> str | None:
        """The dialect that the file was parsed under; None where it was not parsed."""
        ...

    def fact(self, path: str, source: str) -> tuple[bytes, bytes] | None:
        """(payload, span table) of the file's fact row of `source`."""
        ...

    def fact_rows(self, path: str) -> Sequence[FactRow]:
        """Every fact row of the file, keys included; asked of changed files only."""
        ...

    def module_facts(self, path: str) -> tuple[ModuleFacts, Sequence[SpanKey]] | None:
        """The file's `module` facts, decoded, with their span table."""
        ...

    def paths_with_key(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted."""
        ...


class MemoryFacts:
    """A `FactStore` over parsed blobs that are held in memory.

    Args:
        files: path -> what its blob says.
        other_paths: files of the state that were not parsed.
    """

    def __init__(self, files: Mapping[str, ParsedBlob], other_paths: Iterable[str] = ()) -> None:
        self._files = files
        self._paths = frozenset(files) | frozenset(other_paths)
        self._children: dict[str, set[str]] = {"": set()}
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._by_name.setdefault(_index_name(path), []).append(path)
            self._add_to_folder(path)
        self._with_key: dict[tuple[str, str], list[str]] = {}
        for path in sorted(files):
            for row in files[path].facts:
                for key in row.keys:
                    self._with_key.setdefault((row.source, key), []).append(path)
        self._decoded: OrderedDict[str, tuple[ModuleFacts, Sequence[SpanKey]]] = OrderedDict()

    def _add_to_folder(self, path: str) -> None:
        entry = path
        while True:
            folder, _, name = entry.rstrip("/").rpartition("/")
            known = folder in self._children
            self._children.setdefault(folder, set()).add(name + "/" if entry.endswith("/") else name)
            if known or not folder:
                return
            entry = folder + "/"

    def has_path(self, path: str) -> bool:
        """Whether the state has a file at `path`."""
        return path in self._paths

    def has_folder(self, path: str) -> bool:
        """Whether the state has a file somewhere below the folder `path`."""
        return path in self._children

    def children(self, folder: str) -> Sequence[str]:
        """Names directly below `folder`, sorted; folders end with a slash."""
        return sorted(self._children.get(folder, ()))

    def paths_ending(self, suffix: str) -> Sequence[str]:
        """Paths that are `suffix` or end with `/` and `suffix`, sorted."""
        end = "/" + suffix
        return [
            path
            for path in self._by_name.get(_index_name(suffix), ())
            if path == suffix or path.endswith(end)
        ]

    def dialect(self, path: str) -> str | None:
        """The dialect that the file was parsed under; None where it was not parsed."""
        blob = self._files.get(path)
        return None if blob is None else blob.dialect

    def fact(self, path: str, source: str) -> tuple[bytes, bytes] | None:
        """(payload, span table) of the file's fact row of `source`."""
        for row in self.fact_rows(path):
            if row.source == source:
                return row.payload, row.spans
        return None

    def fact_rows(self, path: str) -> Sequence[FactRow]:
        """Every fact row of the file."""
        blob = self._files.get(path)
        return () if blob is None else blob.facts

    def module_facts(self, path: str) -> tuple[ModuleFacts, Sequence[SpanKey]] | None:
        """The file's `module` facts, decoded, with their span table."""
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

    def paths_with_key(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted."""
        return self._with_key.get((source, key), ())


def _index_name(path: str) -> str:
    """What the suffix index files a path under: its name, or `folder/name` for an `__init__`."""
    folder, _, name = path.rpartition("/")
    if name.startswith("__init__.") and folder:
        return f"{folder.rpartition('/')[2]}/{name}"
    return name
