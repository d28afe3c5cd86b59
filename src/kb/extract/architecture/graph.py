"""The import graph of one package tree, with the statements that make each edge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from kb.extract.api import FileView, WorldView
from kb.extract.architecture.facts import SOURCE, ArchitectureFacts
from kb.extract.layout import join, parent
from kb.model.artifacts import Grounding

NodeT = TypeVar("NodeT", bound=Hashable)


class Edge(NamedTuple):
    """One import statement that leads from a module to another of the repository."""

    importer: str
    imported: str
    ground: Grounding
    type_checking: bool
    deferred: bool
    optional: bool

    @property
    def runs_at_import(self) -> bool:
        """The imported module is loaded while the importing one is."""
        return not self.type_checking and not self.deferred


@dataclass
class Graph:
    """Modules of a package tree and the edges that begin in them."""

    modules: dict[str, bool] = field(default_factory=dict)
    """Dotted name -> whether it is a package."""
    edges: list[Edge] = field(default_factory=list)

    def package_of(self, module: str) -> str:
        """The module itself where it is a package, else the package that it lies in."""
        known = self.modules.get(module)
        return module if known or "." not in module else module.rpartition(".")[0]


def read_graph(world: WorldView, init: str) -> Graph:
    """The graph of the package whose `__init__` is at `init`, modules in plain folders below it included."""
    graph = Graph()
    top = world.file(init)
    within = f"{top.module_name}." if top is not None else ""
    folders = [parent(init)]
    packages: dict[str, bool] = {}
    while folders:
        folder = folders.pop()
        for name in world.modules_in(folder):
            if name.endswith("/"):
                folders.append(join(folder, name[:-1]))
            elif name.endswith(".py"):
                _read_file(world, join(folder, name), within, graph, packages)
    # Modules outside of the tree that its edges lead to are needed to tell their packages.
    graph.modules = packages | graph.modules
    graph.edges.sort()
    return graph


def _read_file(world: WorldView, path: str, within: str, graph: Graph, packages: dict[str, bool]) -> None:
    view = world.file(path)
    if view is None or not f"{view.module_name}.".startswith(within):  # a program among the fixtures
        return
    graph.modules[view.module_name] = view.is_package
    read = world.facts(path, SOURCE, ArchitectureFacts)
    if read is None:
        return
    facts, grounds = read
    for statement in facts.imports:
        found = world.loaded(path, statement)
        if found is None or found.path is None or found.qualified == view.module_name:
            continue
        packages[found.qualified] = found.path.endswith(("/__init__.py", "/__init__.pyi"))
        graph.edges.append(
            Edge(
                view.module_name,
                found.qualified,
                grounds.ground(statement.span, "import"),
                statement.condition == "type_checking",
                bool(statement.scope),
                statement.condition in ("try", "except_import_error"),
            )
        )


def components(edges: Mapping[NodeT, Iterable[NodeT]]) -> Iterator[list[NodeT]]:
    """Strongly connected components, each after those that it leads to (Tarjan, without recursion)."""
    index: dict[NodeT, int] = {}
    low: dict[NodeT, int] = {}
    stack: list[NodeT] = []
    held: set[NodeT] = set()
    for start in edges:
        if start in index:
            continue
        work: list[tuple[NodeT, Iterator[NodeT]]] = [(start, iter(edges.get(start, ())))]
        index[start] = low[start] = len(index)
        stack.append(start)
        held.add(start)
        while work:
            node, following = work[-1]
            for target in following:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    held.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target in held:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found: list[NodeT] = []
                    while not found or found[-1] != node:
                        found.append(stack.pop())
                        held.discard(found[-1])
                    yield found


def ancestor(one: str, other: str) -> bool:
    """Whether one dotted name contains the other."""
    return one.startswith(other + ".") or other.startswith(one + ".")


def is_top_package(file: FileView, world: WorldView) -> bool:
    """Whether the file is the `__init__` of a package that no other regular package holds."""
    folder = parent(file.path)
    if not file.is_package or not file.path.endswith(".py"):
        return False
    for _ in range(file.module_name.count(".")):
        folder = parent(folder)
        if any(world.exists(join(folder, name)) for name in ("__init__.py", "__init__.pyi")):
            return False
    return True
