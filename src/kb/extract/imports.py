"""Imports: one artifact per importing module and imported module or name, on the exact statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kb.extract.api import FactOutput, FileView, ParseView, Resolution, WorldView
from kb.extract.expressions import render
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import DynamicImport, Import


@dataclass
class _Group:
    """Every statement of one file that imports the same thing."""

    resolution: Resolution
    loaded: Resolution | None
    name: str | None
    statements: list[Import] = field(default_factory=list)


class ImportsExtractor:
    """Who imports what, resolved, with what cannot be resolved said as such."""

    id = "imports"
    version = 3
    dialects = frozenset({"python", "python-stub"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Nothing: the `module` facts say it all."""
        return None

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One draft per imported module or name, in the order of the first statements."""
        importer = file.key_prefix + file.module_name
        for imported, group in _grouped(file, world).items():
            yield _draft(file, importer, imported, group)
        yield from _dynamic(file, world, importer)


def _grouped(file: FileView, world: WorldView) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for statement in file.module.imports:
        found = world.resolve_import(file.path, statement)
        imported = f"{found.spelled}.*" if statement.name == "*" else found.spelled
        group = groups.get(imported)
        if group is None:
            loaded = world.loaded(file.path, statement)
            group = groups[imported] = _Group(found, loaded, statement.name)
        group.statements.append(statement)
    return groups


def _draft(file: FileView, importer: str, imported: str, group: _Group) -> ArtifactDraft:
    found, statements = group.resolution, group.statements
    body: dict[str, Any] = {
        "importer": file.module_name,
        "imported": imported,
        "target": found.target if group.loaded is None else "internal",
        "resolution": found.how,
    }
    if group.loaded is not None:
        body["module"] = group.loaded.qualified
        if found.target != "internal":
            body["defined"] = found.target  # the module itself has the name from elsewhere
    if group.name is not None and (found.kind != "module" or group.name == "*"):
        body["name"] = group.name
    if found.kind:
        body["kind"] = found.kind
    if found.qualified != found.spelled and found.how != "unresolved":
        body["definition"] = found.qualified
    if found.distribution is not None:
        body["distribution"] = found.distribution
    aliases = sorted({item.alias for item in statements if item.alias and item.alias != item.name})
    if aliases:
        body["aliases"] = aliases
    body.update(_circumstances(statements))
    listed = file.module.dunder_all or ()
    bound = {item.alias or item.name for item in statements if not item.scope}
    if file.is_package and any(name and not name.startswith("_") for name in bound):
        body["reexported"] = bool(bound & set(listed)) if file.module.dunder_all is not None else True
    return ArtifactDraft(
        kind="import",
        logical_key=f"import:{importer}->{_target_id(imported, group)}",
        title=f"{file.module_name} imports {imported}",
        body=body,
        text=_text(body),
        groundings=_grounds(file, statements),
        links=_links(found, group.loaded),
        confidence=found.confidence,
    )


def _target_id(imported: str, group: _Group) -> str:
    """The imported name, with the key prefix of its module where one root hides another."""
    if group.loaded is None:
        return imported
    module = group.loaded.key.removeprefix("module:")
    prefix = module.removesuffix(group.loaded.qualified)
    return prefix + imported


def _circumstances(statements: Sequence[Import]) -> dict[str, bool]:
    """What holds for every statement of the group: type checking only, optional, deferred, conditional."""
    conditions = [item.condition for item in statements]
    said = {
        "type_checking": all(condition == "type_checking" for condition in conditions),
        "optional": all(condition in ("try", "except_import_error") for condition in conditions),
        "conditional": all(condition in ("if", "else") for condition in conditions),
        "deferred": all(item.scope for item in statements),
    }
    return {word: True for word, holds in said.items() if holds}


def _grounds(file: FileView, statements: Sequence[Import]) -> tuple[Grounding, ...]:
    return tuple(file.ground_module(item.span, "import") for item in statements)


def _links(found: Resolution, loaded: Resolution | None) -> tuple[Link, ...]:
    links = []
    if loaded is not None:
        links.append(Link("imports", loaded.key))
    if found.key and (loaded is None or found.key != loaded.key):
        links.append(Link("imports", found.key))
    if found.distribution is not None:
        links.append(Link("provided_by", f"dependency:{found.distribution}"))
    return tuple(links)


_TARGETS = {
    "stdlib": "the standard library",
    "external": "an external distribution",
    "unknown": "an unknown place",
}
_SAID = {
    "type_checking": "Only for type checking.",
    "optional": "Optional: a failing import is handled.",
    "conditional": "Under a condition.",
    "deferred": "Inside a function, when it runs.",
    "reexported": "Offered further by the package.",
}


def _text(body: dict[str, Any]) -> str:
    imported = body["imported"]
    what = imported
    if "name" in body:
        module = imported.removesuffix(f".{body['name']}")
        what = f"everything of {module}" if body["name"] == "*" else f"{body['name']} from {module}"
    parts = [
        f"{body['importer']} imports {what}"
        + (f" as {', '.join(body['aliases'])}" if "aliases" in body else "")
    ]
    if "definition" in body:
        parts.append(f"defined as {body['definition']}")
    if "distribution" in body:
        parts.append(f"of the distribution {body['distribution']}")
    elif body["target"] in _TARGETS:
        parts.append(f"of {_TARGETS[body['target']]}")
    sentence = ", ".join(parts) + "."
    if body["resolution"] != "exact":
        sentence += f" Resolution: {body['resolution']}."
    return " ".join([sentence, *(words for flag, words in _SAID.items() if body.get(flag))])


# Dynamic imports ---------------------------------------------------------------------------------------


def _dynamic(file: FileView, world: WorldView, importer: str) -> Iterator[ArtifactDraft]:
    groups: dict[str, list[DynamicImport]] = {}
    for call in file.module.dynamic_imports:
        package = f", package={render(call.package)}" if call.package is not None else ""
        groups.setdefault((render(call.argument) or "?") + package, []).append(call)
    for written, calls in groups.items():
        first = calls[0]
        statement = _as_import(first)
        body: dict[str, Any] = {
            "importer": file.module_name,
            "argument": written,
            "call": first.function,
            "target": "unknown",
            "resolution": "dynamic",
        }
        links: tuple[Link, ...] = ()
        imported, confidence = written, 30
        if statement is not None:
            found = world.resolve_import(file.path, statement)
            loaded = world.loaded(file.path, statement) if found.target == "internal" else None
            whole = first.argument is not None and first.argument.kind == "str"
            imported = found.spelled if whole else written
            body["target"] = found.target
            body["imported" if whole else "package"] = found.spelled
            if found.how == "unresolved":
                body["found"] = False
            if loaded is not None:
                body["module" if whole else "package"] = loaded.qualified
            if found.distribution is not None:
                body["distribution"] = found.distribution
            links = _links(found, loaded)
            confidence = min(90 if whole else 50, found.confidence)
        if all(call.scope for call in calls):
            body["deferred"] = True
        known = f" ({body['target']})" if body["target"] != "unknown" else ""
        yield ArtifactDraft(
            kind="import",
            logical_key=f"import:{importer}->dynamic:{imported}",
            title=f"{file.module_name} imports {imported} dynamically",
            body=body,
            text=f"{file.module_name} imports {imported}{known} at run time with {first.function}({written}).",
            groundings=tuple(file.ground_module(call.span, "dynamic_import") for call in calls),
            links=links,
            confidence=confidence,
        )


def _as_import(call: DynamicImport) -> Import | None:
    """The static import that a dynamic one amounts to, or that of the package its name begins with."""
    argument = call.argument
    if argument is None:
        return None
    if argument.kind == "str":
        dotted = argument.value
    elif (argument.kind == "fstr" and argument.items and argument.items[0].kind == "str") or (
        argument.kind == "binop" and argument.value == "+" and argument.items[0].kind == "str"
    ):
        dotted = argument.items[0].value.rpartition(".")[0]
    else:
        return None
    level = len(dotted) - len(dotted.lstrip("."))
    dotted = dotted.lstrip(".")
    if level:
        package = call.package
        if package is not None and package.kind == "str":
            dotted, level = f"{package.value}.{dotted}", 0
        elif package is None or package.value not in ("__package__", "__name__"):
            return None
    if not all(part.isidentifier() for part in dotted.split(".")):
        return None
    return Import(call.span, dotted, level=level, scope=call.scope)
