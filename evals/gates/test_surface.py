"""What packages offer is what griffe says is public, with the same signatures."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import griffe
import pytest

from evals.folders import Knowledge, by_key, files_of, linked
from kb.extract.surface import SurfaceExtractor

FOLDER = Path(__file__).parents[1] / "fixtures" / "packages" / "surface"
PACKAGES = ["gallery", "gallery.frames", "gallery.lazy", "gallery.dynamic", "gallery.stars"]

pytestmark = pytest.mark.gate("surface.griffe")


@pytest.fixture(scope="module")
def ours() -> dict[str, Knowledge]:
    return by_key(linked(files_of(FOLDER), [SurfaceExtractor()]))


@pytest.fixture(scope="module")
def gallery() -> griffe.Module:
    loaded = griffe.load("gallery", search_paths=[FOLDER], allow_inspection=False)
    assert isinstance(loaded, griffe.Module)
    return loaded


def module_of(gallery: griffe.Module, package: str) -> griffe.Module:
    found = gallery if package == "gallery" else gallery[package.removeprefix("gallery.")]
    assert isinstance(found, griffe.Module)
    return found


def offered(ours: dict[str, Knowledge], package: str, *via: str) -> set[str]:
    return {
        found.draft.body["name"]
        for found in ours.values()
        if found.draft.kind == "surface"
        and found.draft.body["package"] == package
        and (not via or found.draft.body["via"] in via)
    }


def public(module: griffe.Module) -> set[str]:
    """griffe's public names; submodules only where they are listed, special functions left out."""
    if module.exports is not None:
        return {str(name) for name in module.exports}
    return {
        name
        for name, member in module.members.items()
        if member.is_public
        and not name.startswith("__")
        and name.isidentifier()
        and (member.is_alias or not member.is_module)
    }


# griffe does not read `__all__.extend([...])`.
KNOWN_TO_KB_ONLY = {"gallery": {"mix"}}


@pytest.mark.parametrize("package", PACKAGES)
def test_listed_defined_and_starred_names_are_those_that_griffe_calls_public(
    package: str, ours: dict[str, Knowledge], gallery: griffe.Module
) -> None:
    found = offered(ours, package, "__all__", "definition", "star")
    more = KNOWN_TO_KB_ONLY.get(package, set())
    assert found - more == public(module_of(gallery, package))
    assert more <= found


def test_reexports_without_a_list_are_what_griffe_calls_imported_from_inside(
    ours: dict[str, Knowledge], gallery: griffe.Module
) -> None:
    module = module_of(gallery, "gallery.frames")
    inside = {
        name
        for name, member in module.members.items()
        if member.is_alias and not name.startswith("_") and member.target_path.startswith("gallery.")
    }
    assert offered(ours, "gallery.frames", "reexport") == inside == {"Colour", "Wood"}


def test_private_packages_offer_nothing(ours: dict[str, Knowledge]) -> None:
    assert offered(ours, "gallery._internal") == set()


def test_what_cannot_be_told_is_said(ours: dict[str, Knowledge]) -> None:
    assert ours["surface:gallery.dynamic.missing"].draft.body["resolution"] == "unresolved"
    assert ours["package:gallery.lazy"].draft.body["getattr"] is True
    assert ours["package:gallery.stars"].draft.body["stars"] == ["os.path"]


def test_definitions_are_those_that_griffe_resolves(
    ours: dict[str, Knowledge], gallery: griffe.Module
) -> None:
    compared = 0
    for found in ours.values():
        body = found.draft.body
        member = found.draft.kind == "surface" and module_of(gallery, body["package"]).members.get(
            body["name"]
        )
        if member and "definition" in body:
            expected = member.final_target.path if member.is_alias else member.path
            assert body["definition"] == expected, found.draft.logical_key
            compared += 1
    assert compared > 20


def test_signatures_are_those_that_griffe_reads(ours: dict[str, Knowledge], gallery: griffe.Module) -> None:
    compared = 0
    for found in ours.values():
        body = found.draft.body
        if found.draft.kind != "surface" or body.get("kind") != "function":
            continue
        function = gallery[body["definition"].removeprefix("gallery.")]
        assert _of_text(body["signature"]) == _of_griffe(function), found.draft.logical_key
        compared += 1
    assert compared >= 5


def _of_text(signature: str) -> tuple[Any, ...]:
    (node,) = ast.parse(f"{signature}: ...").body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    args = node.args
    parameters = [(arg, "positional-only") for arg in args.posonlyargs]
    parameters += [(arg, "positional or keyword") for arg in args.args]
    defaults: list[ast.expr | None] = [None] * (len(parameters) - len(args.defaults))
    defaults += args.defaults
    if args.vararg:
        parameters.append((args.vararg, "variadic positional"))
        defaults.append(None)
    parameters += [(arg, "keyword-only") for arg in args.kwonlyargs]
    defaults += args.kw_defaults
    if args.kwarg:
        parameters.append((args.kwarg, "variadic keyword"))
        defaults.append(None)
    return (
        isinstance(node, ast.AsyncFunctionDef),
        [
            (arg.arg, kind, _text(arg.annotation), _text(default))
            for (arg, kind), default in zip(parameters, defaults, strict=True)
        ],
        _text(node.returns),
    )


def _of_griffe(function: Any) -> tuple[Any, ...]:
    return (
        "async" in function.labels,
        [
            (
                parameter.name,
                parameter.kind.value,
                _text(parameter.annotation),
                None if parameter.kind.value.startswith("variadic") else _text(parameter.default),
            )
            for parameter in function.parameters
        ],
        _text(function.returns),
    )


def _text(expression: Any) -> str | None:
    """Source in one spelling; a quoted annotation counts as its content."""
    if expression is None:
        return None
    source = ast.unparse(expression) if isinstance(expression, ast.expr) else str(expression)
    node = ast.parse(source, mode="eval").body
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node)
