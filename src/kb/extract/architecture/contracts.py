"""Contracts of import-linter as a manifest declares them, with the imports and chains of imports that break them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple

from kb.extract.api import FileView, WorldView
from kb.extract.architecture.facts import ArchitectureFacts, Contract
from kb.extract.architecture.graph import Edge, ancestor, read_graph
from kb.model.artifacts import ArtifactDraft

_SEPARATORS = re.compile(r"[|:]")


_MOST_SOURCES = 500
"""Parts of one contract that are looked at: each costs a walk through the graph."""


class _Rule(NamedTuple):
    """What lies in `source` may not reach what lies in one of `targets`."""

    source: str
    targets: tuple[str, ...]
    others: tuple[str, ...] | None = ()
    """Further parts that a chain may not lead through, nor through the targets; None where it may."""
    exact: bool = False
    """Source and targets are modules and not all that lies below them."""


class _Breaks(NamedTuple):
    """What breaks a rule: the direct imports, and a shortest chain for each target without one."""

    direct: list[tuple[str, str]]
    chains: list[list[str]]


class _Imports:
    """The edges that a contract looks at, by importing module."""

    def __init__(self, edges: Iterable[Edge], modules: Iterable[str]) -> None:
        self.modules = frozenset(modules)
        self.edges: dict[tuple[str, str], list[Edge]] = {}
        self.following: dict[str, list[str]] = {}
        for edge in sorted(edges):
            pair = (edge.importer, edge.imported)
            if pair not in self.edges:
                self.following.setdefault(edge.importer, []).append(edge.imported)
            self.edges.setdefault(pair, []).append(edge)

    def breaks(self, rule: _Rule) -> _Breaks:
        """Walks from the source in breadth; of chains with one length the first by name."""
        places = _Places((*rule.targets, *(rule.others or ())), exact=rule.exact)
        source = _Places((rule.source,), exact=rule.exact)
        start = sorted(module for module in self.modules if source.of(module))
        direct = [
            (module, imported)
            for module in start
            for imported in self.following.get(module, ())
            if any(name in rule.targets for name in places.of(imported))
        ]
        done = {name for _, imported in direct for name in places.of(imported)}
        chains: list[list[str]] = []
        came: dict[str, str] = dict.fromkeys(start, "")
        pending = start
        while pending:
            following: list[str] = []
            for module in pending:
                for imported in self.following.get(module, ()):
                    if imported in came:
                        continue
                    came[imported] = module
                    names = places.of(imported)
                    if any(name in rule.targets and name not in done for name in names):
                        chains.append(_chain(came, imported))
                    done.update(names)
                    if not names or rule.others is None:
                        following.append(imported)
            pending = following
        return _Breaks(direct, chains)


class _Places:
    """Which of some names a module lies below."""

    def __init__(self, names: Iterable[str], *, exact: bool) -> None:
        self._names = frozenset(names)
        self._exact = exact

    def of(self, module: str) -> list[str]:
        """The names, the module's own first."""
        found = [module] if module in self._names else []
        while not self._exact and module:
            module = module.rpartition(".")[0]
            if module in self._names:
                found.append(module)
        return found


def _chain(came: dict[str, str], module: str) -> list[str]:
    found = [module]
    while came[found[-1]]:
        found.append(came[found[-1]])
    return found[::-1]


def contract_drafts(file: FileView, world: WorldView, facts: ArchitectureFacts) -> Iterator[ArtifactDraft]:
    """One draft per declared contract."""
    if not facts.contracts:
        return
    graphs = [
        read_graph(world, init)
        for package in facts.root_packages
        if (init := world.module(package)) is not None and init.endswith("/__init__.py")
    ]
    edges = {
        edge
        for graph in graphs
        for edge in graph.edges
        if not (facts.without_type_checking and edge.type_checking)
    }
    modules = {module for graph in graphs for module in graph.modules if _within(module, facts.root_packages)}
    # A root that is no package here has no graph: nothing can be said of it.
    whole = bool(graphs) and len(graphs) == len(facts.root_packages)
    for contract in facts.contracts:
        ignored = [_pattern(line) for line in contract.options.get("ignore_imports", ())]
        kept = [
            edge
            for edge in edges
            if not any(pattern.fullmatch(f"{edge.importer} -> {edge.imported}") for pattern in ignored)
        ]
        yield _draft(file, contract, _Imports(kept, modules), facts.root_packages, whole=whole)


def _draft(
    file: FileView, contract: Contract, imports: _Imports, roots: tuple[str, ...], *, whole: bool
) -> ArtifactDraft:
    # The graph has edges inside the repository only: what a contract says of others is not checked.
    named = contract.options.get("forbidden_modules", ())
    checkable = whole and contract.kind in _RULES and all(_within(name, roots) for name in named)
    made = _RULES[contract.kind](contract, imports) if contract.kind in _RULES else iter(())
    rules = list(islice(made, _MOST_SOURCES + 1))
    too_many = len(rules) > _MOST_SOURCES
    if too_many:
        checkable, rules = False, []
    found = [imports.breaks(rule) for rule in rules]
    broken_by = sorted({pair for breaks in found for pair in breaks.direct})
    only_direct = _is_true(contract, "allow_indirect_imports")
    indirect = [] if only_direct else sorted(chain for breaks in found for chain in breaks.chains)
    undeclared = _undeclared(contract, imports)
    body: dict[str, Any] = {
        "name": contract.name,
        "type": contract.kind,
        "options": {key: list(lines) for key, lines in sorted(contract.options.items())},
        "checked": checkable,
        "broken_by": [list(pair) for pair in broken_by],
        "broken_through": indirect,
    }
    if undeclared:
        body["undeclared"] = undeclared
    if checkable:
        body["kept"] = not (broken_by or indirect or undeclared)
    lines = [f"Contract of import-linter ({contract.kind}): {contract.name}"]
    lines += [f"{key}: {', '.join(values)}" for key, values in sorted(contract.options.items())]
    if broken_by:
        lines.append(f"Broken by {len(broken_by)} direct imports.")
    lines += [f"Broken by a chain of imports: {' -> '.join(chain)}." for chain in indirect]
    if undeclared:
        lines.append(f"Not among its layers: {', '.join(undeclared)}.")
    if too_many:
        lines.append(f"Not checked: it has more than {_MOST_SOURCES} parts.")
    if body.get("kept"):
        lines.append("No import breaks it, nor a chain of imports.")
    steps = [pair for chain in indirect for pair in pairwise(chain)]
    grounds = [
        edge.ground._replace(role="violation") for pair in broken_by for edge in imports.edges[pair]
    ] + [imports.edges[pair][0].ground._replace(role="violation") for pair in steps]
    return ArtifactDraft(
        kind="architecture_contract",
        logical_key=f"contract:{file.path}:{contract.id}",
        title=contract.name,
        body=body,
        text="\n".join(lines),
        groundings=tuple(dict.fromkeys((file.ground(contract.span, "contract"), *grounds))),
    )


def _pattern(line: str) -> re.Pattern[str]:
    """Modules or an ignored import as import-linter writes them: `*` is one component, `**` any number of them."""
    spaced = " -> ".join(part.strip() for part in line.split("->"))
    return re.compile(re.escape(spaced).replace(r"\*\*", ".+").replace(r"\*", r"[^.\s]+").replace(r"\ ", " "))


def _within(module: str, roots: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{root}.") for root in roots)


def _is_true(contract: Contract, option: str) -> bool:
    return tuple(line.lower() for line in contract.options.get(option, ())) == ("true",)


def _named(contract: Contract, option: str, imports: _Imports) -> list[str]:
    """The modules that an option names, those that its patterns stand for included."""
    found: list[str] = []
    for line in contract.options.get(option, ()):
        matching = _pattern(line)
        found += sorted(filter(matching.fullmatch, imports.modules)) if "*" in line else [line]
    return list(dict.fromkeys(found))


def _layers(contract: Contract, imports: _Imports) -> Iterator[tuple[str, list[tuple[int, bool, str]]]]:
    """Each container ("" for none) with height from the top, independence and name of each of its layers."""
    for container in _named(contract, "containers", imports) or [""]:
        places = []
        for height, line in enumerate(contract.options.get("layers", ())):
            for part in _SEPARATORS.split(line):
                name = part.strip().strip("()").strip()
                places.append((height, ":" not in line, f"{container}.{name}" if container else name))
        yield container, places


def _layer_rules(contract: Contract, imports: _Imports) -> Iterator[_Rule]:
    """A lower layer may not reach a higher one, nor one of two independent parts of a layer the other."""
    for _, places in _layers(contract, imports):
        for height, independent, name in places:
            targets = tuple(
                other
                for other_height, _, other in places
                if height > other_height or (height == other_height and independent and name != other)
            )
            rest = tuple(other for _, _, other in places if other != name and other not in targets)
            yield _Rule(name, targets, rest)


def _undeclared(contract: Contract, imports: _Imports) -> list[str]:
    """What an exhaustive contract of layers leaves out."""
    if contract.kind != "layers" or not _is_true(contract, "exhaustive"):
        return []
    found: list[str] = []
    for container, places in _layers(contract, imports):
        known = {name for _, _, name in places}
        known |= {f"{container}.{name}" for name in contract.options.get("exhaustive_ignores", ())}
        found += sorted(
            module
            for module in imports.modules
            if container and module.rpartition(".")[0] == container and module not in known
        )
    return found


def _forbidden_rules(contract: Contract, imports: _Imports) -> Iterator[_Rule]:
    exact = contract.options.get("as_packages", ()) in (("False",), ("false",))
    forbidden = _named(contract, "forbidden_modules", imports)
    for source in _named(contract, "source_modules", imports):
        targets = tuple(
            name for name in forbidden if name != source and (exact or not ancestor(source, name))
        )
        yield _Rule(source, targets, None, exact)


def _independence_rules(contract: Contract, imports: _Imports) -> Iterator[_Rule]:
    modules = _named(contract, "modules", imports)
    for source in modules:
        yield _Rule(source, tuple(name for name in modules if name != source and not ancestor(source, name)))


_RULES = {"layers": _layer_rules, "forbidden": _forbidden_rules, "independence": _independence_rules}
