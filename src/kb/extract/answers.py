"""Every answer that `World` gives about one state, with its digest: pure functions of paths and facts.

A look-up is (kind, key); key parts are joined by `SEPARATOR`. The kinds:

| kind | key | answer |
|---|---|---|
| `exists` | path | whether there is a file |
| `layout` | path | dotted name, key prefix and root of a Python file |
| `module` | stem (`shop/orders`) | file that is the module there, with its name |
| `modules` | folder | names of the Python files and packages directly in it |
| `defining` | stem relative to a root | roots that define it |
| `binding` | path, symbol path | kind of what the name is bound to, and where an import leads |
| `definition` | path, symbol path | all that is said about it, and its spans |
| `header` | path, symbol path | what its header says, and the header's span |
| `bases` | path, symbol path | base classes as written |
| `stars` | path | star imports and `__getattr__` |
| `exports` | path | which names a star import takes: a static `__all__`, or the underscore rule |
| `names` | path | the names that a star import takes from it |
| `fact` | path, source | the fact row |
| `inverse` | source, key | files that carry the key, with their rows |
| `carried` | source, key | whether any file carries the key |
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from kb.extract.bindings import ABSENT, Binding, FileTable, Stars, digest
from kb.extract.factstore import FactStore
from kb.extract.layout import Found, Layout, ModuleName, is_python, join

SEPARATOR = "\x1f"
PYTHON_DIALECTS = frozenset({"python", "python-stub"})
_TABLES = 1024
_PRESENT = digest(True)


class Answers:
    """Answers about one state; remembers what it decoded, within a bound.

    Args:
        facts: the state's paths and facts.
        layout: names of its modules, over the same paths.
    """

    def __init__(self, facts: FactStore, layout: Layout) -> None:
        self.facts = facts
        self.layout = layout
        self._tables: OrderedDict[str, FileTable | None] = OrderedDict()
        self._module_digests: dict[str, bytes] = {}
        self._fact_digests: dict[tuple[str, str], bytes] = {}

    def table(self, path: str) -> FileTable | None:
        """The bindings of a file; None where it has no `module` facts."""
        if path in self._tables:
            self._tables.move_to_end(path)
            return self._tables[path]
        read = self.facts.module_facts(path)
        table = None if read is None else FileTable(*read)
        self._tables[path] = table
        if len(self._tables) > _TABLES:
            self._tables.popitem(last=False)
        return table

    def name(self, path: str) -> ModuleName | None:
        """The module name of a Python file."""
        if is_python(path) or self.facts.dialect(path) in PYTHON_DIALECTS:
            return self.layout.name(path)
        return None

    def module(self, stem: str) -> Found | None:
        """The module that stands at a stem."""
        return self.layout.module_at(stem)

    def binding(self, path: str, symbol_path: str) -> Binding | None:
        """What a symbol path of a file is bound to."""
        table = self.table(path)
        return None if table is None else table.get(symbol_path)

    def stars(self, path: str) -> Stars:
        """What a module offers beyond its own names."""
        table = self.table(path)
        return Stars((), has_getattr=False) if table is None else table.stars

    def modules_in(self, folder: str) -> list[str]:
        """Names of the Python files, packages and folders that hold such, directly in a folder, sorted."""
        return [
            name
            for name in self.facts.children(folder)
            if is_python(name) or (name.endswith("/") and self._holds_modules(join(folder, name[:-1])))
        ]

    def _holds_modules(self, folder: str) -> bool:
        return self.layout.is_package(folder) or self.layout.holds_part_of_a_package(folder)

    def who_has(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted."""
        return self.facts.paths_with_key(source, key)

    def digest(self, kind: str, key: str) -> bytes:
        """The digest of the answer to one look-up; `ABSENT` for "absent"."""
        if kind in ("binding", "definition", "header", "bases"):
            path, _, symbol_path = key.partition(SEPARATOR)
            table = self.table(path)
            return ABSENT if table is None else table.digest(kind, symbol_path)
        if kind == "module":
            return self._module_digest(key)
        if kind in ("stars", "exports", "names"):
            table = self.table(key)
            return ABSENT if table is None else table.digest(kind, "")
        if kind == "exists":
            return _PRESENT if self.facts.has_path(key) else ABSENT
        if kind == "layout":
            name = self.name(key) if self.facts.has_path(key) else None
            return ABSENT if name is None else digest(*name)
        if kind == "defining":
            roots = self.layout.defining(key)
            return digest([(root, self.layout.is_marked(root)) for root in roots]) if roots else ABSENT
        if kind == "modules":
            names = self.modules_in(key)
            return digest(names) if names else ABSENT
        first, _, second = key.partition(SEPARATOR)
        if kind == "fact":
            return self._fact_digest(first, second)
        paths = self.facts.paths_with_key(first, second)
        if not paths:
            return ABSENT
        return _PRESENT if kind == "carried" else self._inverse_digest(first, paths)

    def _module_digest(self, stem: str) -> bytes:
        known = self._module_digests.get(stem)
        if known is None:
            found = self.layout.module_at(stem)
            known = ABSENT if found is None else digest(found.path, *found.name)
            self._module_digests[stem] = known
        return known

    def _fact_digest(self, path: str, source: str) -> bytes:
        known = self._fact_digests.get((path, source))
        if known is None:
            row = self.facts.fact(path, source)
            known = ABSENT if row is None else _row_digest(*row)
            self._fact_digests[path, source] = known
        return known

    def _inverse_digest(self, source: str, paths: Sequence[str]) -> bytes:
        return digest([(path, self._fact_digest(path, source)) for path in paths])


def _row_digest(payload: bytes, spans: bytes) -> bytes:
    row = hashlib.blake2b(len(payload).to_bytes(8, "big"), digest_size=16)
    row.update(payload)
    row.update(spans)
    return row.digest()
