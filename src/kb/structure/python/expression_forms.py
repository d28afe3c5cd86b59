"""The normal form of expressions and types: one for every spelling that formatters choose between."""

from __future__ import annotations

import re

from kb.structure.python import grammar as g
from kb.structure.python.walk import CLOSE, TUPLE, Handler, Node, Walk

_DOTTED = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_LONGEST_DOTTED = 100
"""Longer chains take the slow way to the same item: reading their text at each link is quadratic."""
_NAME_START = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") | frozenset(
    range(0x80, 0x100)
)
_OPEN_BRACKET = g.token("[")
_SPLATS = g.kinds("list_splat", "splat_type")


def _attribute(walk: Walk, node: Node, depth: int) -> None:
    start, end = node.start_byte, node.end_byte
    if end - start < _LONGEST_DOTTED:
        text = walk.source[start:end]
        if _DOTTED.fullmatch(text):
            walk.out.append(text)
            return
    children = [child for child in node.children if child.kind_id not in g.EXTRAS]
    mark = len(walk.out)
    walk.emit(children[:-1], depth + 1)
    _join_attribute(walk, mark, walk.text(children[-1]))


def _join_attribute(walk: Walk, mark: int, name: bytes) -> None:
    """`object.name` where the object's items begin at `mark`: one dotted item if the object is one."""
    out = walk.out
    if len(out) - mark == 1 and out[mark] and out[mark][0] in _NAME_START:
        out[mark] += b"." + name
    else:
        out.insert(mark, b"(attribute")
        out.append(name)
        out.append(CLOSE)


def _dotted_name(walk: Walk, node: Node, depth: int) -> None:
    names = [walk.text(child) for child in node.children if child.kind_id == g.IDENTIFIER]
    walk.out.append(b".".join(names) if names else walk.text(node))


def _import_prefix(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"=" + b"." * walk.text(node).count(b"."))


def _subscript(walk: Walk, node: Node, depth: int) -> None:
    children = node.children
    walk.out.append(b"(subscript")
    if len(children) == 4 and children[2].kind_id != g.LIST_SPLAT:
        walk.emit(children, depth + 1)
    else:
        at = next(i for i, child in enumerate(children) if child.kind_id == _OPEN_BRACKET)
        walk.emit(children[:at], depth + 1)
        _index(walk, children[at:], depth)
    walk.out.append(CLOSE)


def _index(walk: Walk, children: list[Node], depth: int) -> None:
    """What stands between brackets; several, a trailing comma or an unpacking make a tuple."""
    items = [child for child in children if child.is_named and child.kind_id not in g.EXTRAS]
    spread = any(child.kind_id == g.COMMA for child in children)
    single = items[0] if len(items) == 1 else None
    if single is not None and single.kind_id == g.TYPE and single.children:
        single = single.children[0]
    if single is not None and single.kind_id in _SPLATS:
        spread = True
    if spread:
        walk.out.append(TUPLE)
    for item in items:
        walk.emit(item.children if item.kind_id == g.TYPE else (item,), depth + 1)
    if spread:
        walk.out.append(CLOSE)


def _generic_type(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"(subscript")
    for child in node.children:
        if child.kind_id == g.TYPE_PARAMETER:
            _index(walk, child.children, depth)
        else:
            walk.emit((child,), depth + 1)
    walk.out.append(CLOSE)


def _union_type(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"(binary_operator")
    for child in node.children:
        walk.emit(child.children if child.kind_id == g.TYPE else (child,), depth + 1)
    walk.out.append(CLOSE)


def _member_type(walk: Walk, node: Node, depth: int) -> None:
    mark = len(walk.out)
    children = [child for child in node.children if child.is_named and child.kind_id not in g.EXTRAS]
    for child in children[:-1]:
        walk.emit(child.children if child.kind_id == g.TYPE else (child,), depth + 1)
    _join_attribute(walk, mark, walk.text(children[-1]))


def _slice(walk: Walk, node: Node, depth: int) -> None:
    walk.out.append(b"(slice")
    for child in node.children:
        if child.kind_id == g.COLON:
            walk.out.append(b"=:")
        else:
            walk.emit((child,), depth + 1)
    walk.out.append(CLOSE)


def _transparent(walk: Walk, node: Node, depth: int) -> None:
    walk.emit(node.children, depth + 1)


def _tuple_pattern(walk: Walk, node: Node, depth: int) -> None:
    """`(a) = v` is `a = v`; with a comma it is a tuple."""
    children = node.children
    if len(children) != 2 and not any(child.kind_id == g.COMMA for child in children):
        walk.emit(children, depth + 1)
        return
    walk.out.append(TUPLE)
    walk.emit(children, depth + 1)
    walk.out.append(CLOSE)


def _call(walk: Walk, node: Node, depth: int) -> None:
    walk.outline.calls.append(node)
    walk.out.append(b"(call")
    walk.emit(node.children, depth + 1)
    walk.out.append(CLOSE)


def _lambda(walk: Walk, node: Node, depth: int) -> None:
    generator = walk.generator
    walk.out.append(b"(lambda")
    walk.emit(node.children, depth + 1)
    walk.out.append(CLOSE)
    walk.generator = generator


def _yield(walk: Walk, node: Node, depth: int) -> None:
    walk.generator = True
    walk.out.append(b"(yield")
    walk.emit(node.children, depth + 1)
    walk.out.append(CLOSE)


FORMS: dict[str, Handler] = {
    "attribute": _attribute,
    "dotted_name": _dotted_name,
    "import_prefix": _import_prefix,
    "subscript": _subscript,
    "generic_type": _generic_type,
    "union_type": _union_type,
    "member_type": _member_type,
    "slice": _slice,
    "tuple_pattern": _tuple_pattern,
    "call": _call,
    "lambda": _lambda,
    "yield": _yield,
    "parenthesized_expression": _transparent,
    "parenthesized_list_splat": _transparent,
    "argument_list": _transparent,
    "case_pattern": _transparent,
    "with_item": _transparent,
}
