"""The architecture extractor: packages, cycles, layers, contracts and entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kb.extract.api import FactOutput, FileView, ParseView, Resolution, WorldView
from kb.extract.architecture.contracts import contract_drafts
from kb.extract.architecture.facts import (
    SOURCE,
    ArchitectureFacts,
    Script,
    read_ini,
    read_pyproject,
    read_python,
)
from kb.extract.architecture.graph import is_top_package, read_graph
from kb.extract.architecture.packages import PackageKnowledge
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Definition

_READERS: dict[str, Callable[[ParseView], ArchitectureFacts]] = {
    "python": read_python,
    "pyproject": read_pyproject,
    "setup-cfg": read_ini,
    "importlinter": read_ini,
}


class ArchitectureExtractor:
    """How the packages of a repository hang together.

    Home of what a whole tree says is the `__init__` of its top-level package, of contracts and scripts
    the manifest, of a module that can be run the module.
    """

    id = SOURCE
    version = 4
    dialects = frozenset(_READERS)

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Imports, contracts and entry points; None where the file has none."""
        facts = _READERS[parse.dialect](parse)
        return None if facts == ArchitectureFacts() else FactOutput(facts)

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """The drafts that the file is home to."""
        facts = file.own(ArchitectureFacts) or ArchitectureFacts()
        if file.dialect != "python":
            yield from contract_drafts(file, world, facts)
            for script in facts.scripts:
                yield _script(file, world, script)
            return
        if is_top_package(file, world):
            graph = read_graph(world, file.path)
            yield from PackageKnowledge(file.key_prefix, file.module_name, graph).drafts()
        yield from _runnable(file, facts)


def _runnable(file: FileView, facts: ArchitectureFacts) -> Iterator[ArtifactDraft]:
    """A module that can be run: `__main__`, or one with a main guard."""
    is_main = file.module_name.rpartition(".")[2] == "__main__"
    if facts.guard is None and not is_main:
        return
    run = file.module_name.removesuffix(".__main__")
    if facts.guard is not None:
        ground = file.ground(facts.guard, "entry_point")
    else:
        ground = file.ground_module(file.module.module_span, "entry_point")
    module = file.key_prefix + file.module_name
    yield ArtifactDraft(
        kind="entry_point",
        logical_key=f"entry-point:module:{module}",
        title=f"python -m {run}",
        body={"group": "module", "name": run, "module": file.module_name},
        text=f"{file.module_name} can be run: python -m {run}.",
        groundings=(ground,),
        links=(Link("starts", f"module:{module}"),),
    )


def _script(file: FileView, world: WorldView, script: Script) -> ArtifactDraft:
    """A declared command or plug-in, joined to the function that it calls."""
    module, _, attribute = script.target.partition("[")[0].strip().partition(":")
    path = world.module(module)
    found, whole = None, True
    if path is not None and not path.endswith("/") and attribute:
        found, whole = _attribute(world, path, attribute)
    body: dict[str, Any] = {
        "group": script.group,
        "name": script.name,
        "target": script.target,
        "resolution": "unresolved",
    }
    if found is not None or (path and not attribute):
        body["resolution"] = "exact" if whole else "approximate"
    links: list[Link] = []
    grounds = [file.ground(script.span, "declaration")]
    manifest = "" if file.path == "pyproject.toml" else f"{file.path}:"  # several may declare one name
    if found is not None:
        body["definition"] = found.qualified
        if found.key:
            links.append(Link("starts", found.key))
        grounds += _header(world, found)
    word = {"console_scripts": "Command", "gui_scripts": "Graphical command"}.get(script.group, script.group)
    where = f", defined as {found.qualified}" if found is not None else ""
    return ArtifactDraft(
        kind="entry_point",
        logical_key=f"entry-point:{manifest}{script.group}:{script.name}",
        title=f"{script.name} = {script.target}",
        body=body,
        text=f"{word} {script.name} starts {script.target}{where}.",
        groundings=tuple(grounds),
        links=tuple(links),
        confidence={"exact": 100, "approximate": 80}.get(str(body["resolution"]), 60),
    )


def _attribute(world: WorldView, path: str, dotted: str) -> tuple[Resolution | None, bool]:
    """What `main` or `Plugin.make` of a module is, and whether that is the whole of it: a class may inherit
    from another distribution what is asked for."""
    head, *rest = dotted.split(".")
    found = world.attribute(path, head)
    for name in rest:
        inside = found is not None and found.path is not None and found.kind == "class"
        member = (
            world.member(found.path, found.symbol_path, name) if inside and found and found.path else None
        )
        if member is None:
            return found, False
        found = member
    return found, found is not None and found.target == "internal"


def _header(world: WorldView, found: Resolution) -> list[Grounding]:
    if found.path is None or not found.symbol_path:
        return []
    view, bound = world.file(found.path), world.header(found.path, found.symbol_path)
    if view is None or bound is None or not isinstance(bound[1], Definition):
        return []
    return [view.ground_module(bound[1].header, "definition")]
