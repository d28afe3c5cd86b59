"""Dependencies between packages, cycles and layers, as the import statements of one tree make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kb.extract.architecture.graph import Edge, Graph, ancestor, components
from kb.model.artifacts import ArtifactDraft, Grounding, Link

_SHOWN = 12
"""Members that a text names before it says how many more there are."""


class PackageKnowledge:
    """What the graph of one top-level package says.

    Args:
        prefix: key prefix of the tree.
        top: dotted name of its package.
        graph: modules and edges.
    """

    def __init__(self, prefix: str, top: str, graph: Graph) -> None:
        self._prefix = prefix
        self._top = top
        self._graph = graph

    def drafts(self) -> Iterator[ArtifactDraft]:
        """Every artifact of the tree."""
        yield from self._dependencies()
        yield from self._package_cycles()
        yield from self._import_cycles()
        yield from self._layers()

    def _dependencies(self) -> Iterator[ArtifactDraft]:
        between: dict[tuple[str, str], list[Edge]] = {}
        for edge in self._graph.edges:
            pair = (self._graph.package_of(edge.importer), self._graph.package_of(edge.imported))
            if pair[0] != pair[1]:
                between.setdefault(pair, []).append(edge)
        for (importer, imported), edges in sorted(between.items()):
            body: dict[str, Any] = {"importer": importer, "imported": imported}
            text = f"Package {importer} depends on package {imported}."
            if all(edge.type_checking for edge in edges):
                body["type_checking"] = True
                text += " Only for type checking."
            elif all(not edge.runs_at_import for edge in edges):
                body["deferred"] = True
                text += " Only inside functions, when they run."
            modules = sorted({edge.imported for edge in edges})
            body["modules"] = modules
            text += f" It imports {_listed(modules)}."
            yield ArtifactDraft(
                kind="package_dependency",
                logical_key=f"package-dependency:{self._prefix}{importer}->{imported}",
                title=f"{importer} depends on {imported}",
                body=body,
                text=text,
                groundings=_grounds(edges),
                links=(
                    Link("depends_on", f"module:{self._prefix}{imported}"),
                    Link("describes", f"module:{self._prefix}{importer}"),
                ),
            )

    def _package_cycles(self) -> Iterator[ArtifactDraft]:
        graph = self._graph
        edges = [edge for edge in graph.edges if not edge.type_checking]
        pairs = {edge: (graph.package_of(edge.importer), graph.package_of(edge.imported)) for edge in edges}
        # A package and its own sub-packages import each other as a matter of course.
        between = {edge: pair for edge, pair in pairs.items() if pair[0] != pair[1] and not ancestor(*pair)}
        for members in _cycles(between.values()):
            inside = [edge for edge, pair in between.items() if members.issuperset(pair)]
            yield self._cycle("package_cycle", "package-cycle", "Packages", members, inside, between)

    def _import_cycles(self) -> Iterator[ArtifactDraft]:
        between = {edge: (edge.importer, edge.imported) for edge in self._graph.edges if edge.runs_at_import}
        for members in _cycles(between.values()):
            inside = [edge for edge, pair in between.items() if members.issuperset(pair)]
            yield self._cycle("import_cycle", "import-cycle", "Modules", members, inside, between)

    def _cycle(
        self,
        kind: str,
        word: str,
        what: str,
        members: set[str],
        inside: list[Edge],
        between: dict[Edge, tuple[str, str]],
    ) -> ArtifactDraft:
        names = sorted(members)
        pairs = sorted({between[edge] for edge in inside})
        one_each = {between[edge]: edge for edge in reversed(inside)}
        return ArtifactDraft(
            kind=kind,
            logical_key=f"{word}:{self._prefix}{names[0]}",
            title=f"Import cycle of {len(names)} {what.lower()} around {names[0]}",
            body={"members": names, "edges": [list(pair) for pair in pairs]},
            text=f"{what} that import each other in a cycle: {_listed(names)}.",
            groundings=_grounds([one_each[pair] for pair in pairs]),
            links=tuple(Link("contains", f"module:{self._prefix}{name}") for name in names),
        )

    def _layers(self) -> Iterator[ArtifactDraft]:
        """The order of the top package's own parts, if they import each other at all."""
        first: dict[tuple[str, str], Edge] = {}
        for edge in self._graph.edges:
            pair = (self._part(edge.importer), self._part(edge.imported))
            if None not in pair and pair[0] != pair[1] and not edge.type_checking:
                first.setdefault((str(pair[0]), str(pair[1])), edge)
        if not first:
            return
        levels, cyclic = _levels(first)
        body = {"package": self._top, "layers": levels, "cyclic": cyclic}
        lines = [f"Layers of {self._top} as its imports make them, top to bottom:"]
        lines += [f"{at}. {', '.join(level)}" for at, level in enumerate(levels, 1)]
        lines += [f"In a cycle: {', '.join(group)}." for group in cyclic]
        yield ArtifactDraft(
            kind="layers",
            logical_key=f"layers:{self._prefix}{self._top}",
            title=f"Layers of {self._top}",
            body=body,
            text="\n".join(lines),
            groundings=_grounds([edge for _, edge in sorted(first.items())]),
            links=(Link("describes", f"module:{self._prefix}{self._top}"),),
        )

    def _part(self, module: str) -> str | None:
        start = self._top + "."
        return module.removeprefix(start).partition(".")[0] if module.startswith(start) else None


def _cycles(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    following: dict[str, set[str]] = {}
    for importer, imported in sorted(pairs):
        following.setdefault(importer, set()).add(imported)
        following.setdefault(imported, set())
    ordered = {node: sorted(targets) for node, targets in sorted(following.items())}
    return sorted((set(found) for found in components(ordered) if len(found) > 1), key=min)


def _levels(pairs: Iterable[tuple[str, str]]) -> tuple[list[list[str]], list[list[str]]]:
    """(layers from top to bottom, groups that are in a cycle): a part lies above all that it imports."""
    following: dict[str, set[str]] = {}
    for importer, imported in pairs:
        following.setdefault(importer, set()).add(imported)
        following.setdefault(imported, set())
    level: dict[str, int] = {}
    cyclic = []
    for group in components({node: sorted(targets) for node, targets in sorted(following.items())}):
        below = [level[target] for node in group for target in following[node] if target not in group]
        level.update(dict.fromkeys(group, 1 + max(below, default=-1)))
        if len(group) > 1:
            cyclic.append(sorted(group))
    highest = max(level.values())
    layers = [sorted(node for node, at in level.items() if at == height) for height in range(highest, -1, -1)]
    return layers, sorted(cyclic)


def _grounds(edges: list[Edge]) -> tuple[Grounding, ...]:
    return tuple(dict.fromkeys(edge.ground for edge in edges))


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
