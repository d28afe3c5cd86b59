"""Regions of a Python file that could not be parsed: what is kept inside them, and their lines.

A definition that holds such a region keeps its span (its name and its place are known); the region
enters its fingerprint as text. Inside a region, a statement is kept when it parsed without error and
stands at the column of the block that the region is in, so that its symbol path is certain.
"""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter

from kb.model.spans import BlobGap
from kb.structure.python import grammar as g

Node = tree_sitter.Node

_STATEMENTS = g.kinds(
    "class_definition",
    "decorated_definition",
    "expression_statement",
    "for_statement",
    "function_definition",
    "future_import_statement",
    "if_statement",
    "import_from_statement",
    "import_statement",
    "try_statement",
    "while_statement",
    "with_statement",
)


def kept_inside(error: Node) -> list[Node]:
    """The statements of an error region that can be trusted."""
    parent = error.parent
    if parent is None or parent.kind_id == g.MODULE:
        column = 0
    elif parent.kind_id in g.BLOCKS:
        column = parent.start_point.column
    else:
        return []
    return [
        child
        for child in error.named_children
        if child.kind_id in _STATEMENTS and child.start_point.column == column and not child.has_error
    ]


def syntax_gaps(root: Node) -> list[BlobGap]:
    """One gap for each run of lines with a syntax error, in order."""
    lines: set[int] = set()
    for node in _broken(root):
        region = set(range(node.start_point.row, node.end_point.row + 1))
        if node.kind_id == g.ERROR_KIND:
            for kept in kept_inside(node):
                region -= set(range(kept.start_point.row, kept.end_point.row + 1))
        lines |= region
    return [BlobGap("syntax_error", "could not be parsed", start + 1, end + 1) for start, end in _runs(lines)]


def _broken(root: Node) -> Iterator[Node]:
    """The outermost error regions, and the places where the parser had to assume something."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.kind_id == g.ERROR_KIND or node.is_missing:
            yield node
        elif node.has_error:
            pending.extend(node.children)


def _runs(lines: set[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for line in sorted(lines):
        if runs and line == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], line)
        else:
            runs.append((line, line))
    return runs
