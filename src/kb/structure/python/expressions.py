"""Expressions as data (`Expr`), equal for all spellings that formatters choose between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import tree_sitter

from kb.structure.facts import Expr
from kb.structure.python import grammar as g
from kb.structure.python.literal_forms import plain_value
from kb.structure.python.literals import as_text, content_value, number_spelling, spelling
from kb.structure.python.render import meaningful, render

Node: TypeAlias = tree_sitter.Node
Builder: TypeAlias = "Callable[[Expressions, Node, int], Expr]"

_NAMED = g.NAMED

MAX_DEPTH = 40
UNREAD = Expr("other", "…")
"""Stands for an expression that is nested too deep or is larger than the reader was willing to read."""


class Expressions:
    """Builds the expressions of one file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._left: int | None = None

    def build(self, node: Node) -> Expr:
        """The node as an `Expr`, nested at most `MAX_DEPTH` deep."""
        return self.at(node, 0)

    def build_bounded(self, node: Node, most: int) -> Expr:
        """The node as an `Expr`; `UNREAD` when that would take more than `most` nodes."""
        self._left = most
        try:
            built = self.at(node, 0)
            return built if self._left >= 0 else UNREAD
        finally:
            self._left = None

    def at(self, node: Node, depth: int) -> Expr:
        """The node as an `Expr`, `depth` levels below the one that was asked for."""
        if depth > MAX_DEPTH:
            return UNREAD
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return UNREAD
        builder = _BUILDERS.get(node.kind_id)
        return self.other(node) if builder is None else builder(self, node, depth)

    def all(self, nodes: Iterable[Node], depth: int) -> tuple[Expr, ...]:
        """The named nodes among `nodes`, comments left out."""
        return tuple([self.at(node, depth + 1) for node in nodes if node.kind_id in _NAMED])

    def text(self, node: Node) -> str:
        """The node as it is written."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8")

    def other(self, node: Node) -> Expr:
        """An expression of a kind that static reading takes as it is."""
        return Expr("other", render(self.source, node))


def _identifier(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr("name", e.text(node))


def _dotted_name(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr("name", ".".join(e.text(child) for child in node.children if child.kind_id == g.IDENTIFIER))


def _attribute(e: Expressions, node: Node, depth: int) -> Expr:
    held, *_, name = meaningful(node.children)
    target = e.at(held, depth + 1)
    if target.kind == "name":
        return Expr("name", f"{target.value}.{e.text(name)}")
    return Expr("attr", e.text(name), (target,))


def _string(e: Expressions, node: Node, depth: int) -> Expr:
    strings = [node] if node.kind_id == g.STRING else [c for c in node.children if c.kind_id == g.STRING]
    hows = [spelling(e.source[s.start_byte : s.end_byte]) for s in strings]
    if any(how.formatted or how.template for how in hows):
        return _formatted(e, strings, depth)
    value = plain_value(e.source, node)
    if any(how.is_bytes for how in hows):
        return Expr("bytes", as_text(value.decode("latin-1").encode("utf-8")))
    return Expr("str", as_text(value))


def _formatted(e: Expressions, strings: list[Node], depth: int) -> Expr:
    items: list[Expr] = []
    literal = b""
    for string in strings:
        text = e.source[string.start_byte : string.end_byte]
        how = spelling(text)
        at = string.start_byte + how.begin
        for child in string.children:
            if child.kind_id == g.INTERPOLATION:
                literal += content_value(e.source[at : child.start_byte], how)
                if literal:
                    items.append(Expr("str", as_text(literal)))
                literal = b""
                fields = meaningful(child.children)
                items.append(e.at(fields[0], depth + 1) if fields else UNREAD)
                at = child.end_byte
        literal += content_value(e.source[at : string.end_byte - how.quotes], how)
    if literal:
        items.append(Expr("str", as_text(literal)))
    if all(item.kind == "str" for item in items):
        return Expr("str", "".join(item.value for item in items))
    return Expr("fstr", "", tuple(items))


def _number(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr("num", number_spelling(e.source[node.start_byte : node.end_byte]).decode("utf-8"))


def _constant(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr("const", e.text(node))


def _sequence(kind: str) -> Builder:
    def build(e: Expressions, node: Node, depth: int) -> Expr:
        return Expr(kind, "", e.all(node.children, depth))

    return build


def _tuple_pattern(e: Expressions, node: Node, depth: int) -> Expr:
    items = e.all(node.children, depth)
    if len(items) == 1 and not any(child.kind_id == g.COMMA for child in node.children):
        return items[0]
    return Expr("tuple", "", items)


def _dictionary(e: Expressions, node: Node, depth: int) -> Expr:
    items: list[Expr] = []
    for child in meaningful(node.children):
        if child.kind_id == _PAIR:
            items += e.all(child.children, depth)
        else:
            items.append(e.at(child, depth + 1))
    return Expr("dict", "", tuple(items))


def _call(e: Expressions, node: Node, depth: int) -> Expr:
    function, *rest = meaningful(node.children)
    callee = e.at(function, depth + 1)
    arguments: tuple[Expr, ...] = ()
    for child in rest:
        arguments += e.all(child.children, depth) if child.kind_id == g.ARGUMENT_LIST else (e.other(child),)
    return Expr("call", callee.value if callee.kind == "name" else "", (callee, *arguments))


def _keyword(e: Expressions, node: Node, depth: int) -> Expr:
    name, value = meaningful(node.children)[:2]
    return Expr("kwarg", e.text(name), (e.at(value, depth + 1),))


def _star(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr(
        "dstar" if node.children[0].kind_id == _DOUBLE_STAR else "star", "", e.all(node.children, depth)
    )


def _inner(e: Expressions, node: Node, depth: int) -> Expr:
    inner = meaningful(node.children)
    return e.at(inner[0], depth) if len(inner) == 1 else e.other(node)


def _subscript(e: Expressions, node: Node, depth: int) -> Expr:
    value, *index = meaningful(node.children)
    comma = any(child.kind_id == g.COMMA for child in node.children)
    if value.next_named_sibling is not None and index and index[0].kind_id == g.TYPE_PARAMETER:
        comma = any(child.kind_id == g.COMMA for child in index[0].children)
        index = meaningful(index[0].children)
    items = e.all(index, depth)
    if len(items) == 1 and items[0].kind == "tuple" and len(items[0].items) != 1:
        items = items[0].items
    elif len(items) == 1 and comma:
        items = (Expr("tuple", "", items),)
    return Expr("subscript", "", (e.at(value, depth + 1), *items))


def _binary(e: Expressions, node: Node, depth: int) -> Expr:
    operator = next((child for child in node.children if not child.is_named), None)
    sides = e.all(node.children, depth)
    if operator is None or len(sides) != 2:
        return e.other(node)
    return Expr("binop", e.text(operator), sides)


def _unary(e: Expressions, node: Node, depth: int) -> Expr:
    return Expr("unary", e.text(node.children[0]), e.all(node.children, depth))


_PAIR = g.kind("pair")
_DOUBLE_STAR = g.token("**")
_BY_NAME: dict[str, Builder] = {
    "identifier": _identifier,
    "dotted_name": _dotted_name,
    "attribute": _attribute,
    "member_type": _attribute,
    "string": _string,
    "concatenated_string": _string,
    "integer": _number,
    "float": _number,
    "true": _constant,
    "false": _constant,
    "none": _constant,
    "ellipsis": _constant,
    "list": _sequence("list"),
    "list_pattern": _sequence("list"),
    "tuple": _sequence("tuple"),
    "expression_list": _sequence("tuple"),
    "pattern_list": _sequence("tuple"),
    "tuple_pattern": _tuple_pattern,
    "set": _sequence("set"),
    "dictionary": _dictionary,
    "call": _call,
    "keyword_argument": _keyword,
    "list_splat": _star,
    "list_splat_pattern": _star,
    "splat_type": _star,
    "dictionary_splat": _star,
    "dictionary_splat_pattern": _star,
    "parenthesized_expression": _inner,
    "parenthesized_list_splat": _inner,
    "type": _inner,
    "subscript": _subscript,
    "generic_type": _subscript,
    "binary_operator": _binary,
    "boolean_operator": _binary,
    "union_type": _binary,
    "unary_operator": _unary,
    "not_operator": _unary,
}
_BUILDERS: dict[int, Builder] = {
    kind: builder for name, builder in _BY_NAME.items() for kind in g.kinds(name)
}
