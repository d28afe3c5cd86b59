"""Import edges of Django against grimp, with every difference explained by name.

`python -m evals.bench.imports_django [--source FOLDER] [--package NAME]` compares another package too.
Exits 1 on a difference that no rule below explains.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import grimp

from evals.bench.index_django import fetch
from evals.folders import files_of, linked
from kb.extract.imports import ImportsExtractor

Edge = tuple[str, str]


def our_edges(folder: Path, package: str) -> dict[Edge, str]:
    """(importer, imported) -> file, for static imports of sources among the package's modules."""
    files = {
        path: data
        for path, data in files_of(folder).items()
        if path.endswith((".py", ".pyi", ".toml", ".cfg"))
    }
    edges: dict[Edge, str] = {}
    for found in linked(files, [ImportsExtractor()]):
        body = found.draft.body
        static = body["resolution"] != "dynamic" and not found.home.endswith(".pyi")
        if static and body["target"] == "internal" and "module" in body:
            edge = (body["importer"], body["module"])
            if edge[0] != edge[1] and all(f"{name}.".startswith(f"{package}.") for name in edge):
                edges[edge] = found.home
    return edges


def grimp_edges(folder: Path, package: str) -> tuple[set[Edge], set[str]]:
    """grimp's edges, and the modules that it knows."""
    sys.path.insert(0, str(folder))
    graph = grimp.build_graph(package, cache_dir=None)
    sys.path.pop(0)
    return {
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }, set(graph.modules)


def explained(edge: Edge, modules: set[str]) -> str | None:
    """Why only kb has an edge; None where nothing explains it."""
    if edge[0] not in modules or edge[1] not in modules:
        return "a module below a folder without __init__, which grimp does not know"
    return None


def main() -> int:
    """Prints the comparison; 1 where a difference is not explained."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--source", type=Path, help="folder that holds the package; fetched otherwise")
    arguments.add_argument("--package", default="django")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-imports-") as scratch:
        return compare(given.source or fetch(Path(scratch)), given.package)


def compare(folder: Path, package: str) -> int:
    """Prints every difference and the totals of one package."""
    began = time.process_time()
    ours = our_edges(folder, package)
    seconds = time.process_time() - began
    theirs, modules = grimp_edges(folder, package)
    more, fewer = sorted(set(ours) - theirs), sorted(theirs - set(ours))
    unexplained = list(fewer)
    for edge in more:
        reason = explained(edge, modules)
        print(f"only kb    {edge[0]} -> {edge[1]}  ({ours[edge]}): {reason or 'NOT EXPLAINED'}")
        if reason is None:
            unexplained.append(edge)
    for edge in fewer:
        print(f"only grimp {edge[0]} -> {edge[1]}: NOT EXPLAINED")
    common = len(theirs) - len(fewer)
    print(
        f"{package}: kb {len(ours)} edges, grimp {len(theirs)}, in common {common}, "
        f"precision {common / len(ours):.4f}, recall {common / len(theirs):.4f}, "
        f"{len(unexplained)} not explained; kb read and linked in {seconds:.1f} s of CPU"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
