"""What `link` sees: one file, and the rest of the snapshot behind recorded look-ups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kb.errors import GroundingError, IntegrityError
from kb.extract.answers import PYTHON_DIALECTS, SEPARATOR
from kb.extract.api import FileView, Resolution
from kb.extract.bindings import FileTable
from kb.extract.layout import Found, ModuleName
from kb.extract.resolution import Resolver
from kb.model.artifacts import Grounding, LookupRow
from kb.model.spans import SpanKey
from kb.structure.facts import (
    MODULE_SOURCE,
    Import,
    ModuleFacts,
    SpanRef,
    decode_payload,
    decode_span_table,
)

_NO_NAME = ModuleName("", is_package=False, key_prefix="", root="", loose=True)
_OF_FILE = frozenset({"binding", "definition", "header", "bases", "stars", "exports", "names"})
"""Kinds of look-up that a file's `module` facts answer: about the linked file itself they need no record."""


class File:
    """A `FileView`: one file with its facts; its name is looked up when it is asked for."""

    def __init__(self, world: World, path: str, source: str) -> None:
        self._world = world
        self._source = source
        self._row: tuple[bytes, bytes] | None = None
        self._spans: Sequence[SpanKey] | None = None
        self._name: ModuleName | None = None
        self._table: FileTable | None = None
        self.path = path
        self.dialect = world.resolver.ask.answers.facts.dialect(path) or ""

    def _named(self) -> ModuleName:
        if self._name is None:
            python = self.dialect in PYTHON_DIALECTS
            self._name = (python and self._world.resolver.ask.name(self.path)) or _NO_NAME
        return self._name

    @property
    def module_name(self) -> str:
        """Dotted name by the layout."""
        return self._named().dotted

    @property
    def is_package(self) -> bool:
        """The file is an `__init__`."""
        return self._named().is_package

    @property
    def key_prefix(self) -> str:
        """What makes the name unique in the snapshot, "" mostly."""
        return self._named().key_prefix

    @property
    def module(self) -> ModuleFacts:
        """The file's `module` facts; empty where it is not Python."""
        table = self._bindings()
        return ModuleFacts() if table is None else table.facts

    def _bindings(self) -> FileTable | None:
        if self._table is None:
            self._table = self._world.resolver.ask.answers.table(self.path)
        return self._table

    def _fact(self) -> tuple[bytes, bytes] | None:
        if self._row is None:
            self._row = self._world.resolver.ask.answers.facts.fact(self.path, self._source)
        return self._row

    def own(self, kind: type[Any]) -> Any | None:
        """The fact of the source that this view is for, decoded as `kind`."""
        row = self._fact()
        return None if row is None else decode_payload(row[0], kind)

    def ground(self, ref: SpanRef, role: str) -> Grounding:
        """A grounding on a span of this view's own fact row."""
        if self._spans is None:
            row = self._fact()
            self._spans = () if row is None else decode_span_table(row[1])
        return self._world.issue(self.path, self._spans, ref, role)

    def ground_module(self, ref: SpanRef, role: str) -> Grounding:
        """A grounding on a span of the file's `module` facts."""
        table = self._bindings()
        return self._world.issue(self.path, () if table is None else table.spans, ref, role)


class World:
    """A `WorldView`: everything that linking one file with one extractor may ask.

    Args:
        resolver: resolution over one state, shared between files.
        path: the file that is linked.
        extractor: id of the extractor that links it.
    """

    def __init__(self, resolver: Resolver, path: str, extractor: str) -> None:
        self.resolver = resolver
        self._path = path
        self._extractor = extractor
        self.issued: set[tuple[str, bytes, int]] = set()

    def issue(self, path: str, spans: Sequence[SpanKey], ref: SpanRef, role: str) -> Grounding:
        """A grounding on an entry of a span table; refused where there is no such span."""
        if not 0 <= ref < len(spans):
            raise GroundingError(
                f"extractor {self._extractor} grounds on span {ref} of {path}, which has {len(spans)}",
                path=path,
                extractor=self._extractor,
            )
        key = spans[ref]
        self.issued.add((path, key.span_id, key.n))
        return Grounding(path, key.span_id, key.n, role)

    def lookups(self) -> list[LookupRow]:
        """What was asked, with the answers' digests, sorted; what the file's own facts answer left out."""
        answers = self.resolver.ask.answers
        own = self._path + SEPARATOR
        rows = {own + self._extractor, own + MODULE_SOURCE}
        return [
            LookupRow(self._path, self._extractor, kind, key, answers.digest(kind, key))
            for kind, key in sorted(self.resolver.ask.take())
            if not (kind in _OF_FILE and (key == self._path or key.startswith(own)))
            and not (kind == "fact" and key in rows)
        ]

    def home(self) -> File:
        """The file that is linked."""
        return File(self, self._path, self._extractor)

    def module(self, dotted: str) -> str | None:
        """Path of the file that is module `dotted`, seen from the linked file; a folder for a namespace."""
        found = self.resolver.finder.module(self._path, dotted, 0)[1]
        return None if found is None else found.path

    def exists(self, path: str) -> bool:
        """Whether the snapshot has a file at `path`."""
        return self.resolver.ask.exists(path)

    def definition(self, path: str, symbol_path: str) -> tuple[str, Any] | None:
        """What `symbol_path` is bound to in the file at `path`: its kind and its struct."""
        binding = self.resolver.ask.definition(path, symbol_path)
        return None if binding is None else (binding.kind, binding.node)

    def header(self, path: str, symbol_path: str) -> tuple[str, Any] | None:
        """As `definition`, for reading and grounding on headers only."""
        binding = self.resolver.ask.header(path, symbol_path)
        return None if binding is None else (binding.kind, binding.node)

    def modules_in(self, folder: str) -> Sequence[str]:
        """Names of the Python files, packages and folders that hold such, directly in a folder, sorted; those of
        folders end with `/`."""
        return self.resolver.ask.modules_in(folder)

    def loaded(self, path: str, imported: Import) -> Resolution | None:
        """The internal module that an import of the file at `path` loads: the submodule where the name is
        one, else the module that the name is taken from; None where it is not of this repository."""
        return self.resolver.loaded(path, imported)

    def file(self, path: str) -> FileView | None:
        """The file at `path`, for grounding on its spans."""
        if self.resolver.ask.answers.facts.dialect(path) is None:
            return None
        return File(self, path, self._extractor)

    def resolve(self, path: str, dotted: str, scope: str = "") -> Resolution:
        """What `dotted`, as written in `scope` of the file at `path`, means."""
        return self.resolver.resolve(path, dotted, scope)

    def resolve_import(self, path: str, imported: Import) -> Resolution:
        """What one `Import` of the file at `path` imports, an external one with its distribution."""
        found = self.resolver.imported(path, imported)
        if found.target != "external":
            return found
        distribution = self.distribution(found.qualified)
        return found if distribution is None else msgspec.structs.replace(found, distribution=distribution)

    def bases(self, path: str, symbol_path: str) -> Sequence[Resolution]:
        """Resolved base classes of a class, in order."""
        return self.resolver.bases(path, symbol_path)

    def ancestors(self, path: str, symbol_path: str) -> Sequence[Resolution]:
        """Every class that a class derives from, depth first, as far as is known."""
        return list(self.resolver.ancestors(path, symbol_path))

    def member(self, path: str, symbol_path: str, name: str) -> Resolution | None:
        """What attribute `name` of a class is, in its body or inherited."""
        return self.resolver.member(path, symbol_path, name)

    def is_subclass(self, path: str, symbol_path: str, qualified: frozenset[str]) -> str | None:
        """The first of `qualified` that the class derives from."""
        return self.resolver.subclass_of(path, symbol_path, qualified)

    def attribute(self, path: str, name: str) -> Resolution | None:
        """What attribute `name` of the module at `path` is: bound there, a submodule, or by a star."""
        module = self.resolver.ask.name(path)
        return None if module is None else self.resolver.export(Found(path, module), name)

    def exported_names(self, path: str) -> Sequence[str]:
        """Names that the module at `path` lists in `__all__`, else binds without an underscore."""
        return self.resolver.ask.names(path)[0]

    def star_names(self, path: str, imported: Import) -> Sequence[str] | None:
        """Names that a star import of the file at `path` binds, sorted; None where that cannot be told."""
        return self.resolver.star_names(path, imported)

    def who_has(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted."""
        return self.resolver.ask.who_has(source, key)

    def facts(self, path: str, source: str, kind: type[Any]) -> tuple[Any, FileView] | None:
        """Another file's fact row of `source` with a view that grounds on it."""
        row = self.resolver.ask.fact(path, source)
        if row is None:
            return None
        if source == MODULE_SOURCE and kind is ModuleFacts:
            view = File(self, path, source)
            return view.module, view
        return decode_payload(row[0], kind), File(self, path, source)

    def distribution(self, top_level: str) -> str | None:
        """Distribution that the project declares for an external (dotted) module name."""
        if not top_level or "." * len(top_level) == top_level:
            raise IntegrityError(f"{top_level!r} is no module name")
        return self.resolver.finder.distribution(top_level)
