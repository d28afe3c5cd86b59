"""What the names of one file are bound to, as its own facts say, with digests that ignore places.

A digest covers what a fact says and which spans it stands on, never ordinals or table indices: a
statement that is added above changes neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from kb.model.spans import SpanKey
from kb.structure.facts import Assignment, Definition, Expr, Import, ModuleFacts

ABSENT = bytes(16)
"""The digest of the answer "absent"."""

_STRENGTH = {"": 3, "try": 2, "type_checking": 2, "if": 1}
"""Which binding of a name counts: an unconditional one before any other, a fallback last."""

_encode = msgspec.msgpack.Encoder().encode


def digest(*parts: object) -> bytes:
    """16 bytes over the msgpack encoding of the parts."""
    return hashlib.blake2b(_encode(parts), digest_size=16).digest()


class Binding(NamedTuple):
    """What a symbol path is bound to."""

    kind: str
    """A `Definition`'s kind, `assignment` or `import`."""
    node: Definition | Assignment | Import


class Stars(NamedTuple):
    """What a module offers beyond the names it binds itself."""

    imports: tuple[Import, ...]
    has_getattr: bool


class FileTable:
    """The bindings of one file; built once from its `module` facts.

    Args:
        facts: the file's `module` facts.
        spans: their span table.
    """

    def __init__(self, facts: ModuleFacts, spans: Sequence[SpanKey]) -> None:
        self.facts = facts
        self.spans = spans
        self.functions: set[str] = set()
        self._bindings: dict[str, tuple[tuple[int, int], Binding]] = {}
        self._digests: dict[tuple[str, str], bytes] = {}
        stars: list[Import] = []
        for node in facts.definitions:
            if node.kind in ("function", "method", "lambda"):
                self.functions.add(node.symbol_path)
            self._add(node.symbol_path, node.condition, node.ordinal, Binding(node.kind, node))
        for target in facts.assignments:
            if target.name and not target.operator:
                path = self.member(target.scope, target.name)
                known = self._bindings.get(path)
                lambda_assigned = known is not None and known[1].kind == "lambda"
                if not lambda_assigned:
                    self._add(path, target.condition, target.ordinal, Binding("assignment", target))
        for imported in facts.imports:
            if imported.name == "*":
                if not imported.scope:
                    stars.append(imported)
                continue
            bound = imported.alias or imported.name or imported.module.partition(".")[0]
            path = self.member(imported.scope, bound)
            self._add(path, imported.condition, imported.ordinal, Binding("import", imported))
        self.stars = Stars(tuple(stars), facts.has_getattr)

    def _add(self, path: str, condition: str, ordinal: int, binding: Binding) -> None:
        rank = (_STRENGTH.get(condition, 0), ordinal)
        known = self._bindings.get(path)
        if known is None or rank >= known[0]:
            self._bindings[path] = (rank, binding)

    def member(self, scope: str, name: str) -> str:
        """The symbol path of a name that is bound directly in `scope`."""
        if not scope:
            return name
        return f"{scope}.<locals>.{name}" if scope in self.functions else f"{scope}.{name}"

    def get(self, symbol_path: str) -> Binding | None:
        """What the path is bound to: the last binding of the strongest condition."""
        known = self._bindings.get(symbol_path)
        return None if known is None else known[1]

    def names(self) -> Iterable[str]:
        """Every symbol path that is bound."""
        return self._bindings.keys()

    def exported(self) -> list[str]:
        """Names that `from m import *` takes from the file's own bindings and `__all__`."""
        if self.facts.dunder_all is not None:
            return list(self.facts.dunder_all)
        return [name for name in self._bindings if "." not in name and not name.startswith("_")]

    def exports(self, name: str) -> bool:
        """Whether `from m import *` takes `name`, were it bound in the file."""
        if self.facts.dunder_all is not None and not self.facts.dunder_all_dynamic:
            return name in self.facts.dunder_all
        return not name.startswith("_")

    def digest(self, kind: str, symbol_path: str) -> bytes:
        """Digest of the answer to a look-up that is about the file's names."""
        known = self._digests.get((kind, symbol_path))
        if known is None:
            known = self._digests[kind, symbol_path] = self._make_digest(kind, symbol_path)
        return known

    def _make_digest(self, kind: str, symbol_path: str) -> bytes:
        if kind == "names":
            return digest(self.exported(), [_said(item) for item in self.stars.imports])
        if kind == "stars":
            if not self.stars.imports and not self.stars.has_getattr:
                return ABSENT
            return digest([_said(item) for item in self.stars.imports], self.stars.has_getattr)
        if kind == "exports":
            listed = self.facts.dunder_all
            return digest(None if listed is None else sorted(set(listed)), self.facts.dunder_all_dynamic)
        binding = self.get(symbol_path)
        if binding is None:
            return ABSENT
        if kind == "bases":
            return digest([_encode(base) for base in bases_of(binding)])
        if kind == "header":
            return digest(binding.kind, _header(binding.node), *self._stands_on(binding.node)[-2:])
        if kind == "definition":
            return digest(binding.kind, _placeless(binding.node), self._stands_on(binding.node))
        return digest(binding.kind, _said(binding.node))

    def _stands_on(self, node: Definition | Assignment | Import) -> list[bytes | int]:
        spans = [self.spans[node.span]]
        if isinstance(node, Definition):
            spans.append(self.spans[node.header])
        return [part for key in spans for part in key]

    def all_digests(self) -> Iterator[tuple[str, str, bytes]]:
        """(kind, symbol path, digest) of everything that can be asked of this file by name."""
        yield "stars", "", self.digest("stars", "")
        yield "exports", "", self.digest("exports", "")
        yield "names", "", self.digest("names", "")
        for name in self._bindings:
            yield "binding", name, self.digest("binding", name)
            yield "header", name, self.digest("header", name)
            yield "definition", name, self.digest("definition", name)
            if self._bindings[name][1].kind == "class":
                yield "bases", name, self.digest("bases", name)


def bases_of(binding: Binding) -> tuple[Expr, ...]:
    """Base classes as written, keywords left out; () for what is no class."""
    if not isinstance(binding.node, Definition):
        return ()
    return tuple(base for base in binding.node.bases if base.kind not in ("kwarg", "dstar"))


def _said(node: Definition | Assignment | Import) -> list[object]:
    """What following a name depends on: where an import leads, what an alias stands for."""
    if isinstance(node, Import):
        return [node.module, node.name, node.level]
    if isinstance(node, Assignment):
        alias = node.value is not None and node.value.kind == "name"
        return [node.value.value if alias and node.value is not None else ""]
    return []


def _header(node: Definition | Assignment | Import) -> bytes:
    if isinstance(node, Definition):
        node = msgspec.structs.replace(
            node, docstring=None, members=(), self_attributes=(), is_generator=False
        )
    return _placeless(node)


def _placeless(node: Definition | Assignment | Import) -> bytes:
    if isinstance(node, Definition):
        return _encode(msgspec.structs.replace(node, span=-1, header=-1, parent=-1, ordinal=0))
    return _encode(msgspec.structs.replace(node, span=-1, ordinal=0))
