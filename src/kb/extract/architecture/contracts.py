"""Contracts of import-linter as a manifest declares them, with the imports that break them directly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kb.extract.api import FileView, WorldView
from kb.extract.architecture.facts import ArchitectureFacts, Contract
from kb.extract.architecture.graph import Edge, Graph, read_graph
from kb.model.artifacts import ArtifactDraft

_SEPARATORS = re.compile(r"[|:]")


def contract_drafts(file: FileView, world: WorldView, facts: ArchitectureFacts) -> Iterator[ArtifactDraft]:
    """One draft per declared contract."""
    graphs = [
        read_graph(world, init)
        for package in facts.root_packages
        if (init := world.module(package)) is not None and init.endswith("/__init__.py")
    ]
    for contract in facts.contracts:
        yield _draft(file, contract, graphs, facts.root_packages)


def _draft(file: FileView, contract: Contract, graphs: list[Graph], roots: tuple[str, ...]) -> ArtifactDraft:
    ignored = [_pattern(line) for line in contract.options.get("ignore_imports", ())]
    breaks = sorted(
        edge
        for edge in {edge for graph in graphs for edge in graph.edges if _breaks(contract, edge)}
        if not any(pattern.fullmatch(f"{edge.importer} -> {edge.imported}") for pattern in ignored)
    )
    # The graph has edges inside the repository only: what a contract says of others is not checked.
    named = contract.options.get("forbidden_modules", ())
    checkable = bool(graphs) and contract.kind in _CHECKS and all(_within(name, roots) for name in named)
    body: dict[str, Any] = {
        "name": contract.name,
        "type": contract.kind,
        "options": {key: list(lines) for key, lines in sorted(contract.options.items())},
        "checked": checkable,
        "broken_by": [list(pair) for pair in sorted({(edge.importer, edge.imported) for edge in breaks})],
    }
    lines = [f"Contract of import-linter ({contract.kind}): {contract.name}"]
    lines += [f"{key}: {', '.join(values)}" for key, values in sorted(contract.options.items())]
    if breaks:
        lines.append(f"Broken by {len(body['broken_by'])} direct imports.")
    elif body["checked"]:
        lines.append("No direct import breaks it.")
    return ArtifactDraft(
        kind="architecture_contract",
        logical_key=f"contract:{file.path}:{contract.id}",
        title=contract.name,
        body=body,
        text="\n".join(lines),
        groundings=(
            file.ground(contract.span, "contract"),
            *(edge.ground._replace(role="violation") for edge in breaks),
        ),
    )


def _pattern(line: str) -> re.Pattern[str]:
    """An ignored import as import-linter writes it: `*` is one component, `**` any number of them."""
    spaced = " -> ".join(part.strip() for part in line.split("->"))
    return re.compile(re.escape(spaced).replace(r"\*\*", ".+").replace(r"\*", r"[^.\s]+").replace(r"\ ", " "))


def _within(module: str, roots: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{root}.") for root in roots)


def _breaks(contract: Contract, edge: Edge) -> bool:
    check = _CHECKS.get(contract.kind)
    return check is not None and check(contract, edge.importer, edge.imported)


def _breaks_layers(contract: Contract, importer: str, imported: str) -> bool:
    """A lower layer that imports a higher one, or one of two independent parts of a layer the other."""
    for container in contract.options.get("containers", ()) or ("",):
        places: dict[str, tuple[int, int, bool]] = {}
        for height, line in enumerate(contract.options.get("layers", ())):
            independent = "|" in line
            for at, part in enumerate(_SEPARATORS.split(line)):
                name = part.strip().strip("()").strip()
                places[f"{container}.{name}" if container else name] = (height, at, independent)
        one, other = _place(places, importer), _place(places, imported)
        if one is None or other is None or one == other:
            continue
        if one[0] > other[0] or (one[0] == other[0] and one[2]):
            return True
    return False


def _place(places: dict[str, tuple[int, int, bool]], module: str) -> tuple[int, int, bool] | None:
    while module:
        if module in places:
            return places[module]
        module = module.rpartition(".")[0]
    return None


def _breaks_forbidden(contract: Contract, importer: str, imported: str) -> bool:
    return _inside(contract, "source_modules", importer) and _inside(contract, "forbidden_modules", imported)


def _breaks_independence(contract: Contract, importer: str, imported: str) -> bool:
    modules = contract.options.get("modules", ())
    one = [module for module in modules if f"{importer}.".startswith(f"{module}.")]
    other = [module for module in modules if f"{imported}.".startswith(f"{module}.")]
    return bool(one) and bool(other) and one != other


def _inside(contract: Contract, option: str, module: str) -> bool:
    return _within(module, contract.options.get(option, ()))


_CHECKS = {
    "layers": _breaks_layers,
    "forbidden": _breaks_forbidden,
    "independence": _breaks_independence,
}
