"""Small edits of Python source that change what it means, found with `ast`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple


class Edit(NamedTuple):
    """Bytes `start` to `end` replaced by `text`."""

    start: int
    end: int
    text: str
    symbol: str = ""

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()

    def inside(self, start: int, end: int) -> bool:
        return start <= self.start and self.end <= end

    def touches(self, start: int, end: int) -> bool:
        return start <= self.end and self.start <= end


class _Source:
    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.tree = ast.parse(source)
        self.line_starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def range_of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.range_of(node)
        return self.data[start:end].decode()

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Nodes outside formatted strings: inside them positions differ between Pythons."""
        pending: list[ast.AST] = [self.tree]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.JoinedStr):
                continue
            if isinstance(node, kinds):
                yield node
            pending.extend(ast.iter_child_nodes(node))


def _rename(source: _Source) -> Iterator[Edit]:
    for node in source.nodes(ast.Name):
        assert isinstance(node, ast.Name)
        start, end = source.range_of(node)
        yield Edit(start, end, node.id + "_renamed")


def _numbers(source: _Source) -> Iterator[Edit]:
    for node in source.nodes(ast.Constant):
        assert isinstance(node, ast.Constant)
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            start, end = source.range_of(node)
            yield Edit(start, end, repr(node.value + 1))


def _strings(source: _Source) -> Iterator[Edit]:
    documented = {
        id(node.body[0].value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in source.nodes(ast.Constant):
        assert isinstance(node, ast.Constant)
        if isinstance(node.value, str) and id(node) not in documented:
            start, end = source.range_of(node)
            yield Edit(start, end, repr(node.value + "~"))


_SWAPS = {"+": "-", "-": "+", "*": "/", "==": "!=", "!=": "==", "<": ">", ">": "<", "and": "or", "or": "and"}


def _operators(source: _Source) -> Iterator[Edit]:
    for node in source.nodes(ast.BinOp, ast.BoolOp, ast.Compare):
        if isinstance(node, ast.BinOp):
            left, right = node.left, node.right
        elif isinstance(node, ast.BoolOp):
            left, right = node.values[0], node.values[1]
        else:
            assert isinstance(node, ast.Compare)
            left, right = node.left, node.comparators[0]
        start, end = source.range_of(left)[1], source.range_of(right)[0]
        between = source.data[start:end].decode()
        operator = between.strip()
        if operator in _SWAPS:
            yield Edit(start, end, between.replace(operator, _SWAPS[operator]))


def _defaults(source: _Source) -> Iterator[Edit]:
    for node in source.nodes(ast.arguments):
        assert isinstance(node, ast.arguments)
        for default in [*node.defaults, *(one for one in node.kw_defaults if one is not None)]:
            start, end = source.range_of(default)
            yield Edit(start, end, "another_default")


def _definitions(source: _Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in source.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield node


def _decorators(source: _Source) -> Iterator[Edit]:
    for node in _definitions(source):
        for decorator in node.decorator_list:
            start, end = source.range_of(decorator)
            yield Edit(start, end, "another.decorator(1)")


def _async(source: _Source) -> Iterator[Edit]:
    for node in _definitions(source):
        start = source.at(node.lineno, node.col_offset)
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            # Inside the span, whose start is the decorator's.
            yield Edit(start, start + 3, "async def")
        elif isinstance(node, ast.FunctionDef):
            yield Edit(start, start + 3, "async def")


def _names_of_definitions(source: _Source) -> Iterator[Edit]:
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            start = source.at(node.lineno, node.col_offset) + (4 if isinstance(node, ast.FunctionDef) else 6)
            if source.data[start:].startswith(node.name.encode()):
                yield Edit(start, start + len(node.name.encode()), node.name + "_renamed", node.name)


def _order(source: _Source) -> Iterator[Edit]:
    simple = ast.Assign | ast.AugAssign | ast.Expr | ast.Assert | ast.Import | ast.ImportFrom
    for node in source.nodes(ast.FunctionDef, ast.ClassDef, ast.Module, ast.If):
        body: list[ast.stmt] = getattr(node, "body", [])
        for one, two in pairwise(body[1:]):  # never the docstring
            if isinstance(one, simple) and isinstance(two, simple) and one.lineno < two.lineno:
                (start, middle), (again, end) = source.range_of(one), source.range_of(two)
                text = source.data[middle:again].decode()
                if source.text(one) != source.text(two) and text.strip(" \n\t") == "":
                    yield Edit(start, end, source.text(two) + text + source.text(one))


EDITS: dict[str, Callable[[_Source], Iterator[Edit]]] = {
    "rename a name": _rename,
    "change a number": _numbers,
    "change a string": _strings,
    "change an operator": _operators,
    "change a default": _defaults,
    "change a decorator": _decorators,
    "make a function async": _async,
    "rename the definition": _names_of_definitions,
    "swap two statements": _order,
}


def edits_of(kind: str, source: str) -> list[Edit]:
    """Every edit of one kind that the source allows, in order."""
    return sorted(EDITS[kind](_Source(source)))
