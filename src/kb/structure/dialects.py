"""Which dialect a path is read as; the one place where a path decides anything about reading.

A dialect names a way to read a blob, a language names the family whose spans share identity: `.py`
and `.pyi` are two dialects of one language. A dialect without a grammar is read as text: facts cite
whole lines of it. To add one, add a row to `DIALECTS` and its names to the tables below it.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import NamedTuple

from kb.identity.spans import NORMALIZATION_VERSION

STRUCTURE_VERSION = 1
"""Bumped by hand when other spans, gaps or occurrences come out of the same tree."""

PARSER_VERSION = (
    f"tree-sitter {version('tree-sitter')}, tree-sitter-python {version('tree-sitter-python')}, "
    f"structure {STRUCTURE_VERSION}, normalization {NORMALIZATION_VERSION}"
)
"""What a stored parse was made with; a parse under another version is another parse."""


class Dialect(NamedTuple):
    """A way to read a blob."""

    name: str
    language: str
    """Part of span identity."""
    has_grammar: bool


DIALECTS: dict[str, Dialect] = {
    row.name: row
    for row in (
        Dialect("python", "python", has_grammar=True),
        Dialect("python-stub", "python", has_grammar=True),
        Dialect("pyproject", "toml", has_grammar=False),
        Dialect("pipfile", "toml", has_grammar=False),
        Dialect("setup-cfg", "ini", has_grammar=False),
        Dialect("importlinter", "ini", has_grammar=False),
        Dialect("requirements", "requirements", has_grammar=False),
        Dialect("lockfile", "lockfile", has_grammar=False),
        Dialect("markdown", "markdown", has_grammar=False),
        Dialect("rst", "rst", has_grammar=False),
    )
}

_BY_NAME: dict[str, str] = {
    "pyproject.toml": "pyproject",
    "pipfile": "pipfile",
    "setup.cfg": "setup-cfg",
    ".importlinter": "importlinter",
    "poetry.lock": "lockfile",
    "uv.lock": "lockfile",
    "pdm.lock": "lockfile",
    "pipfile.lock": "lockfile",
}
"""Whole file names, lower case; asked first."""

_BY_PATTERN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?:.*/)?(?:[\w.-]*[_.-])?(?:requirements|constraints)(?:[_.-][\w.-]*)?\.(?:txt|in)"),
        "requirements",
    ),
    (re.compile(r"(?:.*/)?requirements/[\w.-]+\.(?:txt|in)"), "requirements"),
)
"""Patterns that match a whole path, lower case; asked second, in order."""

_BY_SUFFIX: dict[str, str] = {
    ".py": "python",
    ".pyw": "python",
    ".pyi": "python-stub",
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
}
"""File name suffixes, lower case; asked last."""


def dialect_of(path: str) -> str | None:
    """The dialect that the file at `path` (as git spells it) is read as; None when kb reads none."""
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    if name in _BY_NAME:
        return _BY_NAME[name]
    for pattern, dialect in _BY_PATTERN:
        if pattern.fullmatch(lowered):
            return dialect
    stem, dot, suffix = name.rpartition(".")
    return _BY_SUFFIX.get(dot + suffix) if stem else None


def language_of(dialect: str) -> str:
    """The language whose spans the dialect yields.

    Raises:
        KeyError: no such dialect.
    """
    return DIALECTS[dialect].language


def has_grammar(dialect: str) -> bool:
    """Whether the dialect is read with a syntax tree (otherwise as lines of text)."""
    return DIALECTS[dialect].has_grammar
