"""Readers of lock files: poetry.lock, uv.lock and pdm.lock (TOML), Pipfile.lock (JSON)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.extract.api import ParseView
from kb.extract.dependencies.facts import Declared, DependencyFacts, Unread
from kb.extract.distributions import normalise

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_PAIR = re.compile(r"""^(name|version|source)\s*=\s*(.*)$""")
_QUOTED = re.compile(r"""["']([^"']*)["']""")
_SECTION = re.compile(r'^    "([\w-]+)": \{')
_ENTRY = re.compile(r'^        "([^"]+)": \{')
_VERSION = re.compile(r'^            "version": "([^"]*)"')


def read_lock(parse: ParseView) -> DependencyFacts:
    """Every package that a lock file pins, at its name's and version's lines.

    Lock files are written by programs in one layout, so that reading them line by line is exact; a lock
    without a single package that can be read this way is said to be unread.
    """
    lines = [line.decode("utf-8") for line in parse.source.splitlines()]
    is_json = parse.source.lstrip().startswith(b"{")
    found = list(_json_packages(lines) if is_json else _toml_packages(lines))
    declared = tuple(
        Declared(name, parse.cite_lines(start, end, "locked", name), version, source=source, group=group)
        for name, version, source, group, start, end in found
    )
    unread: tuple[Unread, ...] = ()
    if not declared and any("[[package]]" in line or '"default": {' in line for line in lines):
        unread = (Unread("a lock file in another layout", parse.cite_lines(1, len(lines), "manifest", "")),)
    return DependencyFacts("lock", declared=declared, unread=unread)


_Package = tuple[str, str, str, str, int, int]


def _toml_packages(lines: list[str]) -> Iterator[_Package]:
    """`[[package]]` tables: name and version stand in their first lines."""
    name = version = source = ""
    start = end = 0
    inside = False
    for number, line in enumerate([*lines, "[end]"], 1):
        if line.startswith("["):
            table = _TABLE.match(line)
            if inside and name and not source.startswith("here"):
                yield normalise(name), version, source, "", start, end
            inside = table is not None and table.group(1) == "package" and line.startswith("[[")
            name = version = source = ""
            start = end = number
            continue
        pair = _PAIR.match(line) if inside else None
        if pair is None:
            continue
        quoted = _QUOTED.search(pair.group(2))
        value = quoted.group(1) if quoted is not None else ""
        if pair.group(1) == "name":
            name, end = value, number
        elif pair.group(1) == "version":
            version, end = value, number
        elif re.search(r"\b(?:editable|virtual|directory)\b", pair.group(2)) and re.search(
            r"""["']\.["']""", pair.group(2)
        ):
            source = "here"  # the project itself
        elif "registry" not in pair.group(2):
            source = pair.group(2).strip("{} ")


def _json_packages(lines: list[str]) -> Iterator[_Package]:
    """Sections of a Pipfile.lock; entries are indented by eight blanks."""
    section = name = ""
    start = 0
    for number, line in enumerate(lines, 1):
        if (match := _SECTION.match(line)) is not None:
            section, name = match.group(1), ""
        elif (match := _ENTRY.match(line)) is not None and section != "_meta":
            name, start = match.group(1), number
        elif name and (match := _VERSION.match(line)) is not None:
            group = {"default": "", "develop": "dev"}.get(section, section)
            yield normalise(name), match.group(1).removeprefix("=="), "", group, start, number
            name = ""
        elif name and line.startswith("        }"):
            group = {"default": "", "develop": "dev"}.get(section, section)
            yield normalise(name), "", "not from an index", group, start, number
            name = ""
