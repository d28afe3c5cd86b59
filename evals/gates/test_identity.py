"""Gate: ids depend on what code means to a reader of its tokens, never on its layout or its place.

Real files, edited. Where an edit must change ids, Python's own `ast` is the oracle that it changed the
code; where it must not, black and ruff format are.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import black
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kb.model.spans import LocatedSpan
from kb.structure.reader import read_blob
from tests.identity.edits import EDITS, Edit, edits_of

PACKAGES = ("alembic", "click", "mcp", "rich", "sqlalchemy", "starlette")
LARGEST = 40_000
FILES = 48
CALM = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@cache
def _files() -> tuple[Path, ...]:
    """Spread evenly over the standard library and installed packages, none of them tiny or huge."""
    library = Path(ast.__file__).parent
    roots = [Path(path) for path in map(_folder_of, PACKAGES)] + [
        library,
        library / "asyncio",
        library / "email",
    ]
    chosen: list[Path] = []
    for root in roots:
        pattern = "*.py" if root.is_relative_to(library) and "site-packages" not in str(root) else "**/*.py"
        sized = [path for path in sorted(root.glob(pattern)) if 2_000 < path.stat().st_size < LARGEST]
        step = max(1, len(sized) * len(roots) // FILES)
        chosen += sized[::step]
    return tuple(chosen)


def _folder_of(package: str) -> Path:
    import importlib.util

    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _occurrences(source: str) -> tuple[LocatedSpan, ...]:
    return read_blob("real", source.encode(), "python", ()).occurrences


def _ids(source: str) -> Counter[bytes]:
    return Counter(item.span.span_id for item in _occurrences(source))


def _changed(before: str, after: str) -> list[tuple[str, str]]:
    """Kind and path of the spans of `before` that `after` does not have."""
    names = {item.span.span_id: (item.span.kind, item.span.symbol_path) for item in _occurrences(before)}
    return [names[identity] for identity in _ids(before) - _ids(after)]


@pytest.mark.gate("identity.layout")
def test_black_changes_no_id_of_real_code():
    changed = {}
    for path in _files():
        source = path.read_text(encoding="utf-8")
        formatted = black.format_str(source, mode=black.Mode())
        if difference := _changed(source, formatted):
            changed[path.name] = difference
    assert changed == {}


@pytest.mark.gate("identity.layout")
def test_ruff_format_changes_no_id_of_real_code(tmp_path):
    copies = {}
    for number, path in enumerate(_files()):
        copies[path] = tmp_path / f"file{number}.py"
        copies[path].write_bytes(path.read_bytes())
    ruff = Path(sys.executable).parent / "ruff"
    subprocess.run([str(ruff), "format", "--isolated", "--quiet", str(tmp_path)], check=True)
    changed = {
        path.name: difference
        for path, copy in copies.items()
        if (difference := _changed(path.read_text(encoding="utf-8"), copy.read_text(encoding="utf-8")))
    }
    assert changed == {}


@pytest.mark.gate("identity.layout")
@CALM
@given(data=st.data())
def test_comments_and_docstrings_change_no_id_of_real_code(data):
    source = data.draw(st.sampled_from(_files())).read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    statements, bare = _insertion_points(source)
    commented = data.draw(st.lists(st.sampled_from(statements), max_size=12, unique=True))
    documented = data.draw(st.lists(st.sampled_from(bare), max_size=6, unique=True)) if bare else []
    inserts = [(at, "# a comment, (unbalanced\n") for at in commented]
    inserts += [(at, '"""What it does."""\n') for at in documented]
    for at, text in sorted(inserts, reverse=True):
        line = lines[at - 1]
        lines.insert(at - 1, line[: len(line) - len(line.lstrip())] + text)
    assert _changed(source, "".join(lines)) == []


def _insertion_points(source: str) -> tuple[list[int], list[int]]:
    """Lines where a statement starts, and those where a definition without docstring starts its body."""
    lines = source.splitlines()
    statements, bare = [], []
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not lines[node.lineno - 1][: node.col_offset].strip():
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            statements.append(start)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0]
            start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
            own_line = not lines[first.lineno - 1][: first.col_offset].strip() and start > node.lineno
            if own_line and ast.get_docstring(node, clean=False) is None:
                bare.append(start)
    continued = {at + 2 for at, line in enumerate(lines) if line.endswith("\\")}
    return sorted(set(statements) - continued), sorted(set(bare) - continued)


@pytest.mark.gate("identity.layout")
@CALM
@given(data=st.data())
def test_line_ends_indentation_and_place_change_no_id_of_a_definition(data):
    source = data.draw(st.sampled_from(_files())).read_text(encoding="utf-8")
    unit = data.draw(st.sampled_from([" ", "  ", "   ", "\t", "        "]))
    indented = _reindented(source, unit)
    assume(ast.dump(ast.parse(indented)) == ast.dump(ast.parse(source)))  # no text moved inside a string
    assert _changed(source, indented) == []
    moved = "import before\n\n\ndef first():\n    pass\n\n\n" + indented.replace("\n", "\r\n")
    before = _occurrences(source)
    kept = {item.span.span_id for item in _occurrences(moved)}
    lost = [item.span for item in before if item.span.kind != "module" and item.span.span_id not in kept]
    assert lost == []


def _reindented(source: str, unit: str) -> str:
    """The source with `unit` for each four blanks at the start of a line, strings left alone."""
    lines = source.splitlines(keepends=True)
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            inside |= set(range(token.start[0] + 1, token.end[0] + 1))
    for number, line in enumerate(lines, 1):
        levels, odd = divmod(len(line) - len(line.lstrip(" ")), 4)
        if number not in inside:
            lines[number - 1] = unit * levels + " " * odd + line.lstrip(" ")
    return "".join(lines)


@pytest.mark.gate("identity.meaning")
@pytest.mark.parametrize("kind", sorted(EDITS))
@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
@given(data=st.data())
def test_a_change_of_code_changes_the_ids_around_it_and_no_others(kind, data):
    source = data.draw(st.sampled_from(_files())).read_text(encoding="utf-8")
    possible = edits_of(kind, source)
    assume(possible)
    edit: Edit = data.draw(st.sampled_from(possible))
    edited = edit.apply(source)
    assume(_parses_to_something_else(source, edited))
    before, after = _ids(source), _ids(edited)
    spans = _occurrences(source)
    holding = [
        item for item in spans if item.span.kind in _WHOLE and edit.inside(item.start_byte, item.end_byte)
    ]
    assert any(item.span.kind == "module" for item in holding)
    for item in holding:
        identity = item.span.span_id
        assert after[identity] < before[identity], (item.span.kind, item.span.symbol_path)
    apart = [item for item in spans if not edit.touches(item.start_byte, item.end_byte)]
    renamed = kind == "rename the definition"
    for item in apart:
        path = item.span.symbol_path
        if not (renamed and (path == edit.symbol or path.startswith(f"{edit.symbol}."))):
            assert after[item.span.span_id] >= 1, (item.span.kind, path)


_WHOLE = {"module", "class", "function", "method"}


def _parses_to_something_else(before: str, after: str) -> bool:
    try:
        return ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    except SyntaxError:
        return False
