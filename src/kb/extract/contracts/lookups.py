"""What names mean across files, each question asked once: definitions, bases, members, who includes whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kb.extract.api import FileView, Resolution, WorldView
from kb.extract.contracts.facts import SOURCE, ContractFacts, Site
from kb.extract.contracts.place import (
    Found,
    Place,
)
from kb.model.artifacts import Grounding
from kb.structure.facts import Assignment, Definition

_DEEP = 12


class Lookups:
    """The look-ups of one file's link."""

    def __init__(self, file: FileView, world: WorldView) -> None:
        self.file = file
        self.world = world
        own = file.own(ContractFacts)
        self.own: ContractFacts = own if own is not None else ContractFacts()
        self._facts: dict[str, tuple[ContractFacts, FileView] | None] = {file.path: (self.own, file)}
        self._found: dict[tuple[str, str, str], Found | None] = {}
        self._who: dict[str, tuple[str, ...]] = {}
        self.memo: dict[Any, Any] = {}
        """Of the framework modules, for as long as the link lasts."""

    # -- other files

    def facts(self, path: str) -> tuple[ContractFacts, FileView] | None:
        """Another file's contract facts, with the view that grounds on them."""
        if path not in self._facts:
            self._facts[path] = self.world.facts(path, SOURCE, ContractFacts)
        return self._facts[path]

    def who_has(self, key: str) -> tuple[str, ...]:
        """Files whose contract facts carry the key."""
        if key not in self._who:
            self._who[key] = tuple(self.world.who_has(SOURCE, key))
        return self._who[key]

    def view(self, path: str) -> FileView | None:
        """The file at `path`, after a look-up has named it."""
        return self.file if path == self.file.path else self.world.file(path)

    def ground_site(self, path: str, site: Site, role: str) -> Grounding | None:
        """A grounding on a site of any file."""
        found = self.facts(path)
        return found[1].ground(site.span, role) if found is not None else None

    def ground(self, found: Found, role: str) -> Grounding | None:
        """A grounding on a definition (a class whole, a function's header) or an assignment."""
        view = self.view(found.path)
        if view is None:
            return None
        if found.definition is not None:
            whole = found.definition.kind == "class"
            return view.ground_module(found.definition.span if whole else found.definition.header, role)
        if found.assignment is not None:
            return view.ground_module(found.assignment.span, role)
        return None

    def symbol_key(self, found: Found) -> str:
        """Logical key of a definition's symbol artifact."""
        if found.key:
            return found.key
        view = self.view(found.path)
        if view is None:
            return f"symbol:{found.qualified}"
        dotted = f"{view.module_name}.{found.symbol_path}" if view.module_name else found.symbol_path
        return f"symbol:{view.key_prefix}{dotted}"

    # -- names

    def find(self, place: Place, dotted: str) -> Found | None:
        """What a dotted name means, followed to its definition or assignment; None where unknown."""
        if not dotted:
            return None
        key = (place.path, dotted, place.scope)
        if key not in self._found:
            self._found[key] = self._find(self.world.resolve(place.path, dotted, place.scope), dotted)
        return self._found[key]

    def _find(self, answer: Resolution, dotted: str) -> Found | None:
        if answer.target in ("external", "stdlib"):
            return Found(answer.qualified or dotted, internal=False, spelled=answer.spelled)
        if answer.target != "internal" or answer.path is None or answer.kind == "attribute":
            return None
        if not answer.symbol_path:
            return Found(answer.qualified, True, answer.path, "", "module")
        found = self.at(answer.path, answer.symbol_path)
        return found and replace(found, spelled=answer.spelled, key=answer.key)

    def at(self, path: str, symbol_path: str) -> Found | None:
        """What a symbol path is bound to in a file."""
        view = self.view(path)
        module = view.module_name if view is not None else ""
        qualified = f"{module}.{symbol_path}" if module else symbol_path
        bound = self.world.definition(path, symbol_path)
        if bound is None:
            return None
        kind, what = bound
        definition = what if isinstance(what, Definition) else None
        assignment = what if isinstance(what, Assignment) else None
        if definition is None and assignment is None:
            return None
        return Found(
            qualified,
            True,
            path,
            symbol_path,
            definition.kind if definition else kind,
            definition,
            assignment,
        )

    def qualified(self, place: Place, dotted: str) -> str:
        """Full dotted name, or the name as written where it is not known."""
        found = self.find(place, dotted)
        return found.qualified if found is not None else dotted

    def derives(self, found: Found, names: frozenset[str]) -> str | None:
        """The first of `names` that a class is or, where it is internal, derives from."""
        for name in (found.qualified, found.spelled):
            if name in names:
                return name
        if not found.internal or found.kind != "class":
            return None
        return self.world.is_subclass(found.path, found.symbol_path, names)

    def member(self, found: Found, name: str, depth: int = 0) -> Found | None:
        """An attribute of an internal class, looked for in the class and then along its bases."""
        own = found.definition.members if found.definition is not None else ()
        if name in own:
            return self.at(found.path, f"{found.symbol_path}.{name}")
        for base in self.world.bases(found.path, found.symbol_path) if depth < _DEEP else ():
            inner = self._find(base, base.qualified) if base.target == "internal" else None
            hit = self.member(inner, name, depth + 1) if inner is not None and inner.kind == "class" else None
            if hit is not None:
                return hit
        return None

    def bases(self, found: Found) -> list[Found]:
        """Resolved direct bases of an internal class, unknown ones by their name."""
        answers = self.world.bases(found.path, found.symbol_path)
        known = [self._find(answer, answer.qualified) for answer in answers]
        return [
            hit or Found(answer.qualified, internal=False) for hit, answer in zip(known, answers, strict=True)
        ]
