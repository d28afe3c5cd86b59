"""Public surface: what each package (and each top-level module) offers, resolved to definitions.

The rules: a static `__all__` says it all; without one, what is defined there without an underscore, and
in a package what it imports from the same repository (a re-export), or anywhere `import x as x`. A package
among tests offers as any other: it can be imported. Loose modules that a test runner runs offer nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kb.extract.api import FactOutput, FileView, ParseView, Resolution, WorldView
from kb.extract.expressions import LONGEST, render
from kb.extract.signatures import signature
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Assignment, Definition, Expr, Import

_NOT_OFFERED = frozenset({"setup", "conftest", "noxfile", "manage", "__init__"})
"""Top-level modules that are run, not imported."""
_OF_TESTS = frozenset({"tests", "test", "testing"})
"""Folders whose loose modules a test runner runs."""


class Offer(NamedTuple):
    """One name of a module's surface, and why it is in it."""

    name: str
    via: str
    """`__all__` | `definition` | `reexport` | `star`."""
    statement: Import | None = None
    """The star import that brings it, where one does."""


class SurfaceExtractor:
    """What packages offer to whoever imports them."""

    id = "surface"
    version = 3
    dialects = frozenset({"python", "python-stub"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Nothing: the `module` facts say it all."""
        return None

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One draft per offered name, and one for the package."""
        if not _is_offered(file):
            return
        module = file.module
        borrowed = _borrowed(file, world) if module.dunder_all_dynamic else ()
        offers = list(_offers(file, world, borrowed or ()))
        if not offers and module.dunder_all is None and not module.has_getattr:
            return
        yield _summary(file, world, offers, listed_dynamically=borrowed is None)
        for offer in offers:
            yield _draft(file, world, offer)


def _is_offered(file: FileView) -> bool:
    parts = file.module_name.split(".")
    if any(part.startswith("_") and not part.startswith("__") for part in parts):
        return False
    if file.is_package:
        return bool(parts[0])
    return bool(parts[0]) and len(parts) == 1 and parts[0] not in _NOT_OFFERED and not _is_test(file)


def _is_test(file: FileView) -> bool:
    """Whether a loose module is run by a test runner, by its name or by the folder that it lies in."""
    name = file.module_name
    folders = file.path.split("/")[:-1]
    return name.startswith("test_") or name.endswith("_test") or not _OF_TESTS.isdisjoint(folders)


def _borrowed(file: FileView, world: WorldView) -> list[str] | None:
    """Names that `__all__` takes from other modules' (`__all__ += parts.__all__`); None where it is also
    made in ways that cannot be read."""
    names: list[str] = []
    for assignment in file.module.assignments:
        if assignment.name != "__all__" or assignment.scope:
            continue
        for part in _summands(assignment.value):
            if part.kind == "name" and part.value.endswith(".__all__"):
                found = world.resolve(file.path, part.value.removesuffix(".__all__"))
                if found.kind == "module" and found.path is not None and not found.path.endswith("/"):
                    names += world.exported_names(found.path)
                    continue
            elif part.kind in ("list", "tuple") and all(item.kind == "str" for item in part.items):
                names += [item.value for item in part.items]
                continue
            return None
    return names or None  # changed by a call: there is no assignment to read


def _summands(expr: Expr | None) -> Iterator[Expr]:
    """The parts of a sum of lists, unpacked ones (`[*a.__all__, "b"]`) included."""
    if expr is None:
        return
    if expr.kind == "binop" and expr.value == "+":
        for item in expr.items:
            yield from _summands(item)
    elif expr.kind in ("list", "tuple"):
        for item in expr.items:
            yield item.items[0] if item.kind == "star" else Expr("list", items=(item,))
    else:
        yield expr


def _offers(file: FileView, world: WorldView, borrowed: Sequence[str]) -> Iterator[Offer]:
    module = file.module
    stars = {
        name: statement
        for statement in module.imports
        if statement.name == "*" and not statement.scope
        for name in world.star_names(file.path, statement) or ()
    }
    if module.dunder_all is not None or borrowed:
        for name in dict.fromkeys((*(module.dunder_all or ()), *borrowed)):
            bound = world.definition(file.path, name) is not None
            yield Offer(name, "__all__", None if bound else stars.get(name))
        return
    seen = set()
    for name, via in _bound(file, world):
        if name not in seen and not name.startswith("_"):
            seen.add(name)
            yield Offer(name, via)
    if file.is_package:
        for name in sorted(set(stars) - seen):
            yield Offer(name, "star", stars[name])


def _bound(file: FileView, world: WorldView) -> Iterator[tuple[str, str]]:
    """Names that the module itself binds and means for others, definitions first, in source order."""
    module = file.module
    for definition in module.definitions:
        if "." not in definition.symbol_path:
            yield definition.symbol_path, "definition"
    for assignment in module.assignments:
        if not assignment.scope and assignment.name and not assignment.operator:
            yield assignment.name, "definition"
    for statement in module.imports:
        if statement.scope or statement.name in (None, "*") or statement.condition == "type_checking":
            continue
        bound = statement.alias or statement.name or ""
        # `import x as x` is the typing convention for a re-export, in any module.
        explicit = statement.alias is not None and statement.alias == statement.name
        if explicit or (file.is_package and world.loaded(file.path, statement) is not None):
            yield bound, "reexport"


def _unknown_stars(file: FileView, world: WorldView) -> Iterator[Import]:
    """Star imports of modules that are not of this repository: what they bring cannot be told."""
    for statement in file.module.imports:
        starred = statement.name == "*" and not statement.scope and file.is_package
        if starred and world.star_names(file.path, statement) is None:
            yield statement


def _summary(
    file: FileView, world: WorldView, offers: list[Offer], *, listed_dynamically: bool
) -> ArtifactDraft:
    module = file.module
    names = [offer.name for offer in offers]
    outside = [] if module.dunder_all is not None else [star.module for star in _unknown_stars(file, world)]
    closed = not listed_dynamically and not module.has_getattr and not outside
    body: dict[str, Any] = {
        "package": file.module_name,
        "names": names,
        "listed": module.dunder_all is not None or module.dunder_all_dynamic,
        "resolution": "exact" if closed else "dynamic",
    }
    text = f"{file.module_name} offers {len(names)} names: {', '.join(names)}." if names else ""
    if listed_dynamically:
        body["listed_dynamically"] = True
        text += " Its __all__ is also changed in ways that cannot be read statically."
    if outside:
        body["stars"] = outside
        text += f" It also offers whatever {', '.join(outside)} offers."
    if module.has_getattr:
        body["getattr"] = True
        text += " A module-level __getattr__ may offer more."
    return ArtifactDraft(
        kind="package_surface",
        logical_key=f"package:{file.key_prefix}{file.module_name}",
        title=f"Public surface of {file.module_name}",
        body=body,
        text=text.strip() or f"{file.module_name} offers nothing.",
        groundings=tuple(_summary_grounds(file, offers)),
        links=(Link("describes", f"module:{file.key_prefix}{file.module_name}"),),
        confidence=100 if closed else 80,
    )


def _summary_grounds(file: FileView, offers: list[Offer]) -> Iterator[Grounding]:
    module = file.module
    for span in module.dunder_all_spans:
        yield file.ground_module(span, "export")
    for definition in module.definitions:
        if definition.symbol_path == "__getattr__":
            yield file.ground_module(definition.header, "getattr")
    if module.dunder_all is not None:
        return
    offered = {offer.name for offer in offers}
    for definition in module.definitions:
        if definition.symbol_path in offered:
            yield file.ground_module(definition.header, "definition")
    for assignment in module.assignments:
        if not assignment.scope and assignment.name in offered:
            yield file.ground_module(assignment.span, "definition")
    for statement in module.imports:
        starred = any(offer.statement == statement for offer in offers)
        if not statement.scope and (starred or (statement.alias or statement.name) in offered):
            yield file.ground_module(statement.span, "import")


def _draft(file: FileView, world: WorldView, offer: Offer) -> ArtifactDraft:
    found = world.attribute(file.path, offer.name)
    grounds = list(_own_grounds(file, world, offer))
    body: dict[str, Any] = {"package": file.module_name, "name": offer.name, "via": offer.via}
    text = f"{file.module_name}.{offer.name}"
    links: tuple[Link, ...] = ()
    confidence = 100
    if found is None:
        body |= {"target": "unknown", "resolution": "dynamic" if file.module.has_getattr else "unresolved"}
        text += " is offered, but what it is cannot be told statically."
        confidence = 50
    else:
        body |= {"target": found.target, "resolution": found.how, "definition": found.qualified}
        if found.kind:
            body["kind"] = found.kind
        described, more = _described(file, world, found)
        body |= described
        grounds += more
        line = described.get("signature", found.qualified)
        name = f"{file.module_name}.{offer.name}"
        text = f"{line}\n\nOffered as {name}"
        if found.how == "dynamic" and found.target == "unknown":
            text = f"{name}\n\nOffered by a module-level __getattr__: what it is cannot be told statically."
            del body["definition"]
        else:
            text += f", defined as {found.qualified}." if found.qualified != name else "."
        if "constructor" in described:
            text += f"\nConstructor: {described['constructor']}"
        links = (Link("exposes", found.key),) if found.key else ()
        confidence = found.confidence
    return ArtifactDraft(
        kind="surface",
        logical_key=f"surface:{file.key_prefix}{file.module_name}.{offer.name}",
        title=f"{file.module_name}.{offer.name}",
        body=body,
        text=text,
        groundings=tuple(grounds),
        links=links,
        confidence=confidence,
    )


def _own_grounds(file: FileView, world: WorldView, offer: Offer) -> Iterator[Grounding]:
    """What in the package's own file makes the offer: `__all__`, and the statement that binds the name."""
    if offer.via == "__all__":
        for span in file.module.dunder_all_spans:
            yield file.ground_module(span, "export")
    if offer.statement is not None:
        yield file.ground_module(offer.statement.span, "import")
        return
    bound = world.definition(file.path, offer.name)
    if bound is not None and isinstance(bound[1], Import):
        yield file.ground_module(bound[1].span, "import")


def _described(file: FileView, world: WorldView, found: Resolution) -> tuple[dict[str, Any], list[Grounding]]:
    """Signature of what was found, with the grounding on its header."""
    if found.target != "internal" or found.path is None or found.kind == "module":
        return {}, []
    view = file if found.path == file.path else world.file(found.path)
    bound = world.header(found.path, found.symbol_path)
    if view is None or bound is None:
        return {}, []
    node = bound[1]
    if isinstance(node, Assignment):
        grounds = [view.ground_module(node.span, "definition")]
        annotation, value = render(node.annotation), render(node.value)
        line = node.name + (f": {annotation}" if annotation else "")
        if value:
            line += f" = {value[: LONGEST - 1] + '…' if len(value) > LONGEST else value}"
        return {"signature": line}, grounds
    if not isinstance(node, Definition):
        return {}, []
    described: dict[str, Any] = {"signature": signature(node)}
    grounds = [view.ground_module(node.header, "definition")]
    if node.kind == "class":
        constructor = world.member(found.path, found.symbol_path, "__init__")
        if constructor is not None and constructor.path is not None and constructor.kind == "method":
            made = world.header(constructor.path, constructor.symbol_path)
            other = file if constructor.path == file.path else world.file(constructor.path)
            if made is not None and other is not None and isinstance(made[1], Definition):
                described["constructor"] = signature(made[1])
                grounds.append(other.ground_module(made[1].header, "constructor"))
    return described, grounds
