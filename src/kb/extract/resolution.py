"""What a dotted name means: through scopes, imports, re-exports, star imports, submodules and bases.

Every step asks through `Asking`, so that it is on the record. Names that cannot be told statically come
back as `approximate`, `dynamic` or `unresolved`, never as a guess that looks certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kb.extract.api import Resolution
from kb.extract.asking import Asking
from kb.extract.finding import Finder, Place
from kb.extract.layout import Found, join, parent
from kb.extract.naming import module_key, symbol_key
from kb.extract.stdlib import BUILTINS
from kb.structure.facts import Assignment, Definition, Expr, Import

_BUILTIN_TYPES = frozenset(
    "object type int float complex bool str bytes bytearray list tuple dict set frozenset property super".split()
)
"""Builtins that a star import of a module which is not read is not taken to bind anew."""
_DEPTH = 60
"""Steps along re-exports, aliases or bases after which a chain counts as unresolved."""


class Resolver:
    """Resolves names in one state; shared by every file that is linked in it."""

    def __init__(self, asking: Asking) -> None:
        self.ask = asking
        self.finder = Finder(asking)
        self._depth = 0

    # Imports -----------------------------------------------------------------------------------------

    def imported(self, path: str, statement: Import) -> Resolution:
        """What one `Import` imports: a module, or what a name of a module is bound to in the end."""
        place, found, dotted = self.finder.module(path, statement.module, statement.level)
        name = None if statement.name == "*" else statement.name
        written = f"{dotted}.{name}" if name and not dotted.endswith(".") else dotted + (name or "")
        if place.target != "internal":
            how = "unresolved" if place.target == "unknown" else "exact"
            return Resolution(place.target, written, how, spelled=written)
        if found is None:
            # `from ns import mod` of a namespace package that has its portions in several roots.
            return Resolution("internal", written, "unresolved", spelled=written, confidence=50)
        if name is None:
            return _at(_module(found, place), written)
        # `from . import items` in a package's own `__init__` binds the very name that it asks for.
        own = self._submodule(parent(path), name) if found.path == path and found.name.is_package else None
        exported = own or self.export(found, name)
        if exported is None:
            return Resolution("internal", written, "unresolved", spelled=written, confidence=50)
        return _at(_weakened(exported, place), written)

    def loaded(self, path: str, statement: Import) -> Resolution | None:
        """The internal module whose code an import runs: a submodule of that name before the module."""
        place, found, _ = self.finder.module(path, statement.module, statement.level)
        if found is None:
            return None
        if statement.name not in (None, "*") and found.name.is_package:
            folder = found.path[:-1] if found.path.endswith("/") else parent(found.path)
            submodule = self.ask.module(join(folder, statement.name or ""))
            if submodule is not None and not submodule.path.endswith("/"):
                found = submodule
        return None if found.path.endswith("/") else _module(found, place)

    def _bound(self, path: str, statement: Import) -> Resolution:
        """What the name that an import binds stands for: `import a.b` binds `a`."""
        if statement.name is None and statement.alias is None:
            top = statement.module.partition(".")[0]
            return self.imported(path, msgspec.structs.replace(statement, module=top))
        return self.imported(path, statement)

    def export(self, found: Found, name: str) -> Resolution | None:
        """What attribute `name` of a module is: bound there, a submodule, or taken by a star import."""
        if self._depth >= _DEPTH:
            self.ask.spoil()
            return None
        self._depth += 1
        try:
            return self.ask.remember(
                ("export", found.path, name), lambda: self._find_export(found, name), None
            )
        finally:
            self._depth -= 1

    def _find_export(self, found: Found, name: str) -> Resolution | None:
        path = found.path
        if path.endswith("/"):
            return self._submodule(path[:-1], name)
        if self.ask.binding(path, name) is not None:
            return self.follow(path, name, found)
        if found.name.is_package:
            submodule = self._submodule(parent(path), name)
            if submodule is not None:
                return submodule
        return self._starred(path, name)

    def _submodule(self, folder: str, name: str) -> Resolution | None:
        found = self.ask.module(join(folder, name))
        return None if found is None else _module(found, Place("internal"))

    def _starred(self, path: str, name: str) -> Resolution | None:
        stars = self.ask.stars(path)
        outside: list[str] = []
        for star in reversed(stars.imports):
            place, found, dotted = self.finder.module(path, star.module, star.level)
            if place.target in ("stdlib", "external"):
                outside.append(dotted)
            elif found is not None and not found.path.endswith("/") and self.ask.exports(found.path, name):
                taken = self.export(found, name)
                if taken is not None:
                    return taken
        if len(outside) == 1 and not name.startswith("_"):
            return Resolution("external", f"{outside[0]}.{name}", "approximate", confidence=50)
        if stars.has_getattr:
            return Resolution("unknown", name, "dynamic", path=path, confidence=50)
        return None

    def star_names(self, path: str, statement: Import) -> list[str] | None:
        """Names that a star import binds, sorted; None where its module is not of this repository."""
        names: set[str] = set()
        waiting, seen = [(path, statement)], set()
        whole = True
        while waiting:
            at, star = waiting.pop()
            found = self.finder.module(at, star.module, star.level)[1]
            if found is None or found.path.endswith("/"):
                whole = whole and at != path
                continue
            if found.path in seen:
                continue
            seen.add(found.path)
            exported, stars = self.ask.names(found.path)
            names.update(exported)
            if not self.ask.lists(found.path):
                waiting.extend((found.path, inner) for inner in stars.imports)
        return sorted(names) if whole else None

    def follow(self, path: str, symbol_path: str, found: Found | None = None) -> Resolution:
        """What a bound symbol path of a file stands for; an import is followed to its end."""
        binding = self.ask.binding(path, symbol_path)
        if binding is None:
            return Resolution("unknown", symbol_path, "unresolved", confidence=0)
        if isinstance(binding.node, Import):
            return self._bound(path, binding.node)
        name = found.name if found is not None else self.ask.name(path)
        dotted = "" if name is None else name.dotted
        qualified = f"{dotted}.{symbol_path}" if dotted else symbol_path
        key = symbol_key(name, symbol_path) if name is not None else ""
        return Resolution(
            "internal",
            qualified,
            path=path,
            kind=binding.kind,
            symbol_path=symbol_path,
            spelled=qualified,
            key=key,
        )

    # Names -------------------------------------------------------------------------------------------

    def resolve(self, path: str, dotted: str, scope: str = "") -> Resolution:
        """What `dotted`, as written in `scope` of the file at `path`, means."""
        key = ("resolve", path, dotted, scope)
        unknown = Resolution("unknown", dotted, "unresolved", confidence=0)
        if self._depth >= _DEPTH:
            self.ask.spoil()
            return unknown
        self._depth += 1
        try:
            return self.ask.remember(key, lambda: self._resolve(path, dotted, scope), unknown)
        finally:
            self._depth -= 1

    def _resolve(self, path: str, dotted: str, scope: str) -> Resolution:
        first, *rest = dotted.split(".")
        unknown = Resolution("unknown", dotted, "unresolved", confidence=0)
        if rest and first in ("self", "cls"):
            owner = self._owner(path, scope)
            if owner is not None:
                member = self.member(path, owner, rest[0])
                return unknown if member is None else self._attributes(member, rest[1:])
        for symbol_path in self._visible(path, first, scope):
            if symbol_path is None:
                return unknown  # a parameter hides the name
            if self.ask.binding(path, symbol_path) is not None:
                return self._attributes(self.follow(path, symbol_path), rest)
        starred = self._starred(path, first)
        if starred is not None and not (starred.target == "external" and first in _BUILTIN_TYPES):
            return self._attributes(starred, rest)
        if first in BUILTINS:
            qualified = f"builtins.{dotted}"
            return Resolution("stdlib", qualified, spelled=qualified)
        return unknown

    def _visible(self, path: str, name: str, scope: str) -> Iterator[str | None]:
        """Symbol paths that `name` may be bound at, innermost first; None where a parameter hides it."""
        table = self.ask.answers.table(path)
        innermost = True
        while scope and table is not None:
            binding = self.ask.binding(path, scope)
            if binding is None or binding.kind != "class":
                yield f"{scope}.<locals>.{name}"
                if binding is not None and isinstance(binding.node, Definition):
                    self.ask.definition(path, scope)
                    if any(param.name == name for param in binding.node.params):
                        yield None
            elif innermost:
                yield f"{scope}.{name}"
            innermost = False
            scope = outer_scope(scope)
        yield name

    def _owner(self, path: str, scope: str) -> str | None:
        """The class whose method `scope` is, or lies in."""
        while scope:
            binding = self.ask.binding(path, scope)
            if binding is not None and binding.kind == "class":
                return scope
            scope = outer_scope(scope)
        return None

    def _attributes(self, found: Resolution, rest: Sequence[str]) -> Resolution:
        for at, name in enumerate(rest):
            if found.target != "internal" or found.path is None:
                qualified = ".".join((found.qualified, *rest[at:]))
                return msgspec.structs.replace(
                    found, qualified=qualified, spelled=qualified, kind="", symbol_path="", key=""
                )
            step = self._attribute(found, name)
            if step is None:
                qualified = ".".join((found.qualified, *rest[at:]))
                if found.kind in ("module", "class"):
                    return Resolution("internal", qualified, "unresolved", spelled=qualified, confidence=50)
                return Resolution(
                    "internal",
                    qualified,
                    "approximate",
                    path=found.path,
                    kind="attribute",
                    symbol_path=found.symbol_path,
                    spelled=qualified,
                    confidence=50,
                )
            found = _at(step, f"{found.spelled or found.qualified}.{name}")
        return found

    def _attribute(self, found: Resolution, name: str) -> Resolution | None:
        found = self.unaliased(found)
        if found.target != "internal" or found.path is None:
            return self._attributes(found, (name,))
        if found.kind == "module":
            if found.path.endswith("/"):
                return self._submodule(found.path[:-1], name)
            module = self.ask.name(found.path)
            return None if module is None else self.export(Found(found.path, module), name)
        if found.kind == "class":
            return self.member(found.path, found.symbol_path, name)
        return None

    def unaliased(self, found: Resolution) -> Resolution:
        """The end of a chain of plain aliases (`Base = other.Base`)."""
        for _ in range(_DEPTH):
            if found.kind != "assignment" or found.path is None:
                return found
            binding = self.ask.binding(found.path, found.symbol_path)
            node = None if binding is None else binding.node
            if not isinstance(node, Assignment) or node.value is None or node.value.kind != "name":
                return found
            if node.value.value == found.symbol_path:
                return found
            target = self.resolve(found.path, node.value.value, node.scope)
            if target.target == "unknown":
                return found
            found = target
        return found

    # Classes -----------------------------------------------------------------------------------------

    def bases(self, path: str, symbol_path: str) -> list[Resolution]:
        """Resolved base classes, in order."""
        scope = outer_scope(symbol_path)
        return [self._base(path, base, scope) for base in self.ask.bases(path, symbol_path)]

    def _base(self, path: str, base: Expr, scope: str) -> Resolution:
        if base.kind == "subscript" and base.items:
            base = base.items[0]
        if base.kind == "name":
            return self.unaliased(self.resolve(path, base.value, scope))
        if base.kind == "call" and base.value:
            made_by = self.resolve(path, base.value, scope)
            return Resolution(
                made_by.target, made_by.qualified, "dynamic", spelled=made_by.spelled, confidence=50
            )
        return Resolution("unknown", base.value, "dynamic", confidence=0)

    def ancestors(self, path: str, symbol_path: str) -> Iterator[Resolution]:
        """Every class that the class derives from, depth first, as far as is known; cycles tolerated."""
        seen = {(path, symbol_path)}
        waiting = list(reversed(self.bases(path, symbol_path)))
        while waiting:
            base = waiting.pop()
            yield base
            if base.path is None or base.kind != "class" or (base.path, base.symbol_path) in seen:
                continue
            seen.add((base.path, base.symbol_path))
            waiting.extend(reversed(self.bases(base.path, base.symbol_path)))

    def subclass_of(self, path: str, symbol_path: str, qualified: frozenset[str]) -> str | None:
        """The first of `qualified` that the class derives from."""
        for base in self.ancestors(path, symbol_path):
            if base.qualified in qualified:
                return base.qualified
            if base.spelled in qualified:
                return base.spelled
        return None

    def member(self, path: str, symbol_path: str, name: str) -> Resolution | None:
        """What attribute `name` of a class is, in its own body or in that of a base class."""
        own = f"{symbol_path}.{name}"
        if self.ask.binding(path, own) is not None:
            return self.follow(path, own)
        outside: Resolution | None = None
        for base in self.ancestors(path, symbol_path):
            if base.path is not None and base.kind == "class":
                inherited = f"{base.symbol_path}.{name}"
                if self.ask.binding(base.path, inherited) is not None:
                    return self.follow(base.path, inherited)
            elif outside is None and base.qualified != "builtins.object":
                outside = base
        if outside is None:
            return None
        qualified = f"{outside.qualified}.{name}"
        return Resolution(outside.target, qualified, "approximate", spelled=qualified, confidence=50)


def outer_scope(scope: str) -> str:
    """The scope that a definition stands in: `A` for `A.m`, `f` for `f.<locals>.g`, "" at module level."""
    return scope.rpartition(".")[0].removesuffix(".<locals>")


def _module(found: Found, place: Place) -> Resolution:
    dotted = found.name.dotted
    return Resolution(
        "internal",
        dotted,
        place.how,
        path=found.path,
        kind="module",
        spelled=dotted,
        key=module_key(found.name),
        confidence=place.confidence,
    )


def _at(found: Resolution, spelled: str) -> Resolution:
    return found if found.spelled == spelled else msgspec.structs.replace(found, spelled=spelled)


def _weakened(found: Resolution, place: Place) -> Resolution:
    if place.how == "exact":
        return found
    how = place.how if found.how == "exact" else found.how
    return msgspec.structs.replace(found, how=how, confidence=min(found.confidence, place.confidence))
