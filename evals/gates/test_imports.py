"""Import edges between the modules of a project are those that grimp finds on disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from evals.folders import files_of, linked
from kb.extract.imports import ImportsExtractor

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "evals" / "fixtures" / "packages"

Edges = set[tuple[str, str]]


def our_edges(folder: Path) -> Edges:
    """(importer, imported) among the folder's modules, by static imports of sources; stubs left out."""
    edges = set()
    for found in linked(files_of(folder), [ImportsExtractor()]):
        body = found.draft.body
        static = body["resolution"] != "dynamic" and not found.home.endswith(".pyi")
        if static and body["target"] == "internal" and "module" in body:
            edges.add((body["importer"], body["module"]))
    return {(importer, imported) for importer, imported in edges if importer != imported}


@pytest.fixture
def import_path() -> Iterator[list[str]]:
    """`sys.path`, put back afterwards: grimp looks packages up there, and imports none of them."""
    kept = list(sys.path)
    yield sys.path
    sys.path[:] = kept


def grimp_edges(roots: list[Path], packages: list[str], path: list[str]) -> tuple[Edges, set[str]]:
    """grimp's edges, and the modules that it knows."""
    path[:0] = [str(root) for root in roots]
    graph = grimp.build_graph(*packages, cache_dir=None)
    return {
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }, set(graph.modules)


CASES = {
    "flat": ([""], ["shop"]),
    "src_layout": (["src"], ["alpha", "beta"]),
    "namespaces": (["one/src", "two/src"], ["acme.one", "acme.two"]),
    "portions": ([""], ["pkg"]),
}


@pytest.mark.gate("imports.grimp")
@pytest.mark.parametrize("case", CASES)
def test_internal_edges_of_fixture_packages_equal_grimp(case: str, import_path: list[str]) -> None:
    roots, packages = CASES[case]
    folder = PACKAGES / case
    expected, modules = grimp_edges([folder / root for root in roots], packages, import_path)
    found = our_edges(folder)
    assert {edge for edge in found if modules.issuperset(edge)} == expected


@pytest.mark.gate("imports.grimp")
def test_internal_edges_of_kb_itself_equal_grimp(import_path: list[str]) -> None:
    expected, _ = grimp_edges([ROOT / "src"], ["kb"], import_path)
    assert our_edges(ROOT / "src") == expected
    assert len(expected) > 100


@pytest.mark.gate("imports.grimp")
def test_portions_without_init_are_seen_though_grimp_does_not_know_them(import_path: list[str]) -> None:
    _, modules = grimp_edges([PACKAGES / "portions"], ["pkg"], import_path)
    found = our_edges(PACKAGES / "portions")
    assert {edge for edge in found if not modules.issuperset(edge)} == {
        ("pkg", "pkg.data.seed"),
        ("pkg.core", "pkg.data.seed"),
        ("pkg.data.seed", "pkg.core"),
        ("pkg.data.seed", "pkg.data.other"),
        ("pkg.data.other", "pkg.core"),
    }
