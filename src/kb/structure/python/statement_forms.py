"""The normal form of compound statements, and the conditions that they put on what they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.structure.python import grammar as g
from kb.structure.python.walk import CLOSE, TUPLE, Handler, Node, Walk

_AFTER_PATTERNS = g.kinds("if_clause", "block") | {g.COLON}
_DELETED_TOGETHER = g.kinds("tuple", "expression_list")
_CATCH_IMPORT = frozenset({b"ImportError", b"ModuleNotFoundError", b"Exception", b"BaseException"})


def _as_tuple(walk: Walk, children: list[Node], depth: int) -> None:
    """Expressions side by side: a tuple if a comma is among them."""
    spread = any(child.kind_id == g.COMMA for child in children)
    if spread:
        walk.out.append(TUPLE)
    walk.emit(children, depth + 1)
    if spread:
        walk.out.append(CLOSE)


def _before_colon(children: list[Node]) -> int:
    return next((i for i, child in enumerate(children) if child.kind_id == g.COLON), len(children))


def _with_clause(walk: Walk, node: Node, depth: int) -> None:
    """`with (a, b):` is two items, also where the grammar sees a tuple."""
    walk.out.append(b"(with_clause")
    items = [child for child in node.children if child.is_named and child.kind_id not in g.EXTRAS]
    if len(items) == 1 and items[0].children and items[0].children[0].kind_id == g.TUPLE:
        items = items[0].children[0].children
    walk.emit(items, depth + 1)
    walk.out.append(CLOSE)


def _match_statement(walk: Walk, node: Node, depth: int) -> None:
    children = node.children
    at = _before_colon(children)
    walk.out.append(b"(match_statement")
    _as_tuple(walk, children[:at], depth)
    walk.emit(children[at:], depth + 1)
    walk.out.append(CLOSE)


def _case_clause(walk: Walk, node: Node, depth: int) -> None:
    children = node.children
    at = next((i for i, child in enumerate(children) if child.kind_id in _AFTER_PATTERNS), len(children))
    walk.out.append(b"(case_clause")
    _as_tuple(walk, children[:at], depth)
    _under(walk, "if", children[at:], depth)
    walk.out.append(CLOSE)


def _except_clause(walk: Walk, node: Node, depth: int) -> None:
    """Several types without parentheses are a tuple of them."""
    children = node.children
    at = _before_colon(children)
    walk.out.append(b"(except_clause")
    _as_tuple(walk, children[:at], depth)
    walk.emit(children[at:], depth + 1)
    walk.out.append(CLOSE)


def _delete_statement(walk: Walk, node: Node, depth: int) -> None:
    """`del (a, b)` and `del a, b,` delete two things, `del a,` one."""
    items = [child for child in node.children if child.kind_id in g.NAMED]
    if len(items) == 1 and items[0].kind_id in _DELETED_TOGETHER:
        items = items[0].children
    walk.out.append(b"(delete_statement")
    walk.emit(items, depth + 1)
    walk.out.append(CLOSE)


def _print_statement(walk: Walk, node: Node, depth: int) -> None:
    """In Python 2 a trailing comma keeps the line open."""
    walk.out.append(b"(print_statement")
    walk.emit(node.children, depth + 1)
    if node.children[-1].kind_id == g.COMMA:
        walk.out.append(b"=,")
    walk.out.append(CLOSE)


def _under(walk: Walk, condition: str, nodes: Sequence[Node], depth: int) -> None:
    """The nodes, walked under a condition; type checking stays what it is below any other."""
    scope = walk.scope
    outer = scope.condition
    scope.condition = outer if outer == "type_checking" else condition
    walk.emit(nodes, depth + 1)
    scope.condition = outer


def _if_statement(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"(if_statement")
    condition = "if"
    for child in node.children:
        kind = child.kind_id
        if kind in g.BLOCKS:
            _under(walk, condition, (child,), depth)
        elif kind == g.ELIF_CLAUSE:
            _under(walk, "if", (child,), depth)
        elif kind == g.ELSE_CLAUSE:
            _under(walk, "else", (child,), depth)
        else:
            mark = len(walk.out)
            walk.emit((child,), depth + 1)
            written = walk.out[mark:]
            if len(written) == 1 and written[0].rpartition(b".")[2] == b"TYPE_CHECKING":
                condition = "type_checking"
    walk.out.append(CLOSE)


def _try_statement(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"(try_statement")
    for child in node.children:
        kind = child.kind_id
        if kind in g.BLOCKS:
            _under(walk, "try", (child,), depth)
        elif kind == g.EXCEPT_CLAUSE:
            _under(walk, _except_condition(walk, child), (child,), depth)
        elif kind == g.ELSE_CLAUSE:
            _under(walk, "else", (child,), depth)
        else:
            walk.emit((child,), depth + 1)
    walk.out.append(CLOSE)


def _except_condition(walk: Walk, clause: Node) -> str:
    """Whether a failed import ends up in this clause."""
    children = clause.children
    caught = b" ".join(walk.text(child) for child in children[1 : _before_colon(children)])
    names = set(re.findall(rb"\w+", caught))
    catches = not names or names & _CATCH_IMPORT
    return "except_import_error" if catches else "if"


FORMS: dict[str, Handler] = {
    "with_clause": _with_clause,
    "match_statement": _match_statement,
    "case_clause": _case_clause,
    "except_clause": _except_clause,
    "delete_statement": _delete_statement,
    "print_statement": _print_statement,
    "if_statement": _if_statement,
    "try_statement": _try_statement,
}
