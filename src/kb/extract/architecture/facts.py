"""What one file says about architecture: the imports that make edges, contracts, ways to start."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import tree_sitter

from kb.extract.api import ParseView
from kb.extract.dependencies.manifests import TomlManifest
from kb.extract.stdlib import STDLIB
from kb.structure.facts import Import, SpanRef

SOURCE = "architecture"
_CONTRACT = "importlinter:contract:"


class Contract(msgspec.Struct, frozen=True, array_like=True):
    """One contract of import-linter, as declared."""

    id: str
    name: str
    kind: str
    span: SpanRef
    options: dict[str, tuple[str, ...]]
    """Every other option, in lines."""


class Script(msgspec.Struct, frozen=True, array_like=True):
    """A command or plug-in that a manifest declares."""

    group: str
    """`console_scripts`, `gui_scripts`, or the group of an entry point."""
    name: str
    target: str
    """`package.module:function`."""
    span: SpanRef


class ArchitectureFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Imports that can lead inside the repository (the standard library's left out), and the rest."""

    imports: tuple[Import, ...] = ()
    """With spans of this row's own table."""
    guard: SpanRef | None = None
    """The `if __name__ == "__main__":` statement."""
    contracts: tuple[Contract, ...] = ()
    scripts: tuple[Script, ...] = ()
    root_packages: tuple[str, ...] = ()
    without_type_checking: bool = False
    """`exclude_type_checking_imports` of import-linter."""


def read_python(parse: ParseView) -> ArchitectureFacts:
    """Import statements and the main guard of a Python file."""
    imports = [
        msgspec.structs.replace(item, span=parse.module_span(item.span), alias=None, ordinal=0)
        for item in parse.module.imports
        if item.level or item.module.partition(".")[0] not in STDLIB
    ]
    guard = _guard(parse.root) if parse.module.has_main_guard else None
    return ArchitectureFacts(tuple(imports), None if guard is None else parse.cite(guard))


def _guard(root: tree_sitter.Node) -> tree_sitter.Node | None:
    for child in root.named_children:
        if child.type == "if_statement":
            condition = child.child_by_field_name("condition")
            if condition is not None and b"__name__" in (condition.text or b""):
                return child
    return None


def read_pyproject(parse: ParseView) -> ArchitectureFacts:
    """Contracts of `[tool.importlinter]` and scripts of `[project]` and Poetry."""
    manifest = TomlManifest(parse, "pyproject")
    linter = manifest.at("tool", "importlinter")
    contracts = []
    if isinstance(linter, dict):
        declared = linter.get("contracts")
        for at, options in enumerate(declared if isinstance(declared, list) else ()):
            if isinstance(options, dict):
                lines = manifest.lines_of(("tool", "importlinter", "contracts", at))
                name = str(options.get("name", f"contract {at + 1}"))
                span = parse.cite_lines(*lines, "contract", name)
                contracts.append(_contract(str(options.get("id", at + 1)), name, span, options))
    return ArchitectureFacts(
        contracts=tuple(contracts),
        scripts=tuple(_toml_scripts(manifest)),
        root_packages=_root_packages(linter if isinstance(linter, dict) else {}),
        without_type_checking=_is_on(linter if isinstance(linter, dict) else {}),
    )


def _root_packages(options: Mapping[str, Any]) -> tuple[str, ...]:
    return _lines(options.get("root_packages")) or _lines(options.get("root_package"))


def _is_on(options: Mapping[str, Any]) -> bool:
    return _lines(options.get("exclude_type_checking_imports")) in (("True",), ("true",))


def _contract(identity: str, name: str, span: SpanRef, options: Mapping[str, Any]) -> Contract:
    rest = {str(key): _lines(value) for key, value in options.items() if key not in ("name", "type", "id")}
    return Contract(identity, name, str(options.get("type", "")), span, rest)


def _lines(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return () if value is None else (str(value).lower() if isinstance(value, bool) else str(value),)


def _toml_scripts(manifest: TomlManifest) -> Iterator[Script]:
    tables: list[tuple[str, tuple[str, ...]]] = [
        ("console_scripts", ("project", "scripts")),
        ("gui_scripts", ("project", "gui-scripts")),
        ("console_scripts", ("tool", "poetry", "scripts")),
    ]
    groups = manifest.at("project", "entry-points")
    named = groups if isinstance(groups, dict) else {}
    tables += [(str(group), ("project", "entry-points", str(group))) for group in named]
    for group, path in tables:
        table = manifest.at(*path)
        for name, target in table.items() if isinstance(table, dict) else ():
            if isinstance(target, str):
                lines = manifest.lines_of((*path, str(name)), target)
                span = manifest.parse.cite_lines(*lines, "entry_point", f"{group}.{name}")
                yield Script(group, str(name), target, span)


def read_ini(parse: ParseView) -> ArchitectureFacts:
    """Contracts and entry points of a `.importlinter` or `setup.cfg`."""
    text = parse.source.decode("utf-8")
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # option names as written
    try:
        parser.read_string(text)
    except configparser.Error:
        return ArchitectureFacts()  # the dependencies extractor says that the file cannot be read
    # Lines as spans count them: str.splitlines would also split at form feeds and U+2028.
    numbered = [line.decode("utf-8") for line in parse.source.splitlines()]
    sections = _sections(numbered)
    contracts, scripts = [], []
    for section in parser.sections():
        options = dict(parser.items(section))
        start, end = sections.get(section, (1, len(numbered)))
        if section.startswith(_CONTRACT):
            identity = section.removeprefix(_CONTRACT)
            name = options.get("name", identity)
            contracts.append(
                _contract(identity, name, parse.cite_lines(start, end, "contract", name), options)
            )
        elif section == "options.entry_points":
            for group, declared in options.items():
                for line in _lines(declared):
                    name, _, target = (part.strip() for part in line.partition("="))
                    span = parse.cite_lines(
                        *_line_of(numbered, line, start, end), "entry_point", f"{group}.{name}"
                    )
                    scripts.append(Script(group, name, target, span))
    linter = dict(parser.items("importlinter")) if parser.has_section("importlinter") else {}
    return ArchitectureFacts(
        contracts=tuple(contracts),
        scripts=tuple(scripts),
        root_packages=_root_packages(linter),
        without_type_checking=_is_on(linter),
    )


def _sections(lines: list[str]) -> dict[str, tuple[int, int]]:
    """First and last line of each section."""
    found: dict[str, tuple[int, int]] = {}
    name, start, last = "", 0, 0
    for number, line in enumerate([*lines, "["], 1):
        if line.startswith("["):
            if name:
                found[name] = (start, last)
            header = configparser.RawConfigParser.SECTCRE.match(line.strip())
            name, start = header["header"] if header else "", number
        if line.strip():
            last = number
    return found


def _line_of(lines: list[str], wanted: str, start: int, end: int) -> tuple[int, int]:
    for number, line in enumerate(lines, 1):
        if start <= number <= end and line.strip().endswith(wanted):
            return number, number
    return start, end
