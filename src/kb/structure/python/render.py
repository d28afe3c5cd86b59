"""Syntax as one line of canonical source: the same line for every layout of the same code.

Strings are shown by value in double quotes, parentheses only where precedence asks for them, one blank
between tokens where Python style has one. For people to read and to compare; not meant to be run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import tree_sitter

from kb.structure.python import grammar as g
from kb.structure.python.literal_forms import plain_value
from kb.structure.python.literals import Spelling, as_text, content_value, number_spelling, spelling

Node: TypeAlias = tree_sitter.Node
Form: TypeAlias = "Callable[[Renderer, Node, int], str]"

LONGEST = 2000
"""Characters; what is longer is cut and ends in an ellipsis."""
_DEEPEST = 60

_NAMED = g.NAMED
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def render(source: bytes, node: Node) -> str:
    """The node's canonical one-line source, at most `LONGEST` characters."""
    text = Renderer(source).show(node, 0)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


class Renderer:
    """Renders nodes of one file."""

    def __init__(self, source: bytes) -> None:
        self.source = source

    def text(self, node: Node) -> str:
        """The node as it is written."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8")

    def show(self, node: Node, depth: int) -> str:
        """The node, `depth` levels down; an ellipsis below the deepest level."""
        if depth > _DEEPEST:
            return "…"
        form = _FORMS.get(node.kind_id)
        return self.words(node, depth) if form is None else form(self, node, depth)

    def words(self, node: Node, depth: int) -> str:
        """Any other node: its parts with one blank between."""
        if not node.children:
            return " ".join(self.text(node).split())
        return " ".join(
            self.show(child, depth + 1) for child in node.children if child.kind_id not in g.EXTRAS
        )

    def items(self, nodes: Iterable[Node], depth: int) -> str:
        """The meaningful ones among the nodes, with commas between."""
        return ", ".join(self.show(node, depth + 1) for node in meaningful(nodes))

    def operand(self, node: Node, level: int, depth: int) -> str:
        """An operand, in parentheses where it binds less than `level`."""
        node = _bare(node)
        shown = self.show(node, depth + 1)
        return f"({shown})" if _binding(self, node) < level else shown


def meaningful(nodes: Iterable[Node]) -> list[Node]:
    """The named nodes that are neither comment nor line continuation."""
    return [node for node in nodes if node.kind_id in _NAMED]


def _bare(node: Node) -> Node:
    """What redundant parentheses hold."""
    while node.kind_id in _WRAPPERS:
        inner = meaningful(node.children)
        if len(inner) != 1:
            break
        node = inner[0]
    return node


_ATOM = 20
_AWAIT = 18
_POWER = 17
_UNARY = 16
_OPERATORS = {
    "*": 15, "@": 15, "/": 15, "//": 15, "%": 15, "+": 14, "-": 14, "<<": 13, ">>": 13, "&": 12, "^": 11, "|": 10,
    "not": 8, "and": 7, "or": 6, "**": _POWER,
}  # fmt: skip
_COMPARISON = 9
_NOT = 8
_CONDITIONAL = 5
_LAMBDA = 4
_WALRUS = 3
_YIELD = 1


def _operator(r: Renderer, node: Node) -> str:
    return next((r.text(child) for child in node.children if not child.is_named), "")


def _binding(r: Renderer, node: Node) -> int:
    fixed = _BINDINGS.get(node.kind_id)
    if fixed is not None:
        return fixed
    if node.kind_id in _BINARY:
        return _OPERATORS.get(_operator(r, node), _ATOM)
    return _ATOM


def _wrapped(r: Renderer, node: Node, depth: int) -> str:
    inner = meaningful(node.children)
    return r.show(inner[0], depth + 1) if len(inner) == 1 else r.items(inner, depth)


def _string(r: Renderer, node: Node, depth: int) -> str:
    strings = [node] if node.kind_id == g.STRING else [c for c in node.children if c.kind_id == g.STRING]
    hows = [spelling(r.source[s.start_byte : s.end_byte]) for s in strings]
    if any(how.formatted or how.template for how in hows):
        return _formatted(r, strings, depth)
    value = plain_value(r.source, node)
    if any(how.is_bytes for how in hows):
        return 'b"' + as_text(value.decode("latin-1").encode("utf-8")).translate(_ESCAPES) + '"'
    return '"' + as_text(value).translate(_ESCAPES) + '"'


def _formatted(r: Renderer, strings: list[Node], depth: int) -> str:
    shown = ""
    plain = True
    for string in strings:
        how = spelling(r.source[string.start_byte : string.end_byte])
        at = string.start_byte + how.begin
        for child in string.children:
            if child.kind_id == g.INTERPOLATION:
                plain = False
                shown += _literal(r.source[at : child.start_byte], how) + _field(r, child, depth)
                at = child.end_byte
        shown += _literal(r.source[at : string.end_byte - how.quotes], how)
    return f'"{shown.replace("{{", "{").replace("}}", "}")}"' if plain else f'f"{shown}"'


def _literal(content: bytes, how: Spelling) -> str:
    """Literal text of a formatted string, braces doubled."""
    value = as_text(content_value(content, how)).translate(_ESCAPES)
    return value.replace("{", "{{").replace("}", "}}")


def _field(r: Renderer, node: Node, depth: int) -> str:
    shown = ""
    for child in node.children:
        if child.kind_id == g.FORMAT_SPECIFIER:
            at = child.start_byte
            for nested in meaningful(child.children):
                shown += r.source[at : nested.start_byte].decode("utf-8")
                shown += _field(r, nested, depth + 1)
                at = nested.end_byte
            shown += r.source[at : child.end_byte].decode("utf-8")
        elif child.kind_id not in g.EXTRAS:
            shown += r.show(child, depth + 1)
    return " ".join(shown.split())


def _number(r: Renderer, node: Node, depth: int) -> str:
    return number_spelling(r.source[node.start_byte : node.end_byte]).decode("utf-8")


def _attribute(r: Renderer, node: Node, depth: int) -> str:
    held, *_, name = meaningful(node.children)
    shown = r.operand(held, _ATOM, depth)
    if _bare(held).kind_id in _NUMBERS:
        shown = f"({shown})"
    return f"{shown}.{r.text(name)}"


def _call(r: Renderer, node: Node, depth: int) -> str:
    function, *rest = meaningful(node.children)
    return r.operand(function, _ATOM, depth) + "".join(r.show(child, depth + 1) for child in rest)


def _arguments(r: Renderer, node: Node, depth: int) -> str:
    items = meaningful(node.children)
    if len(items) == 1 and items[0].kind_id == _GENERATOR:
        return r.show(items[0], depth + 1)
    return f"({', '.join(r.operand(item, _WALRUS, depth) for item in items)})"


def _bracketed(opening: str, closing: str) -> Form:
    def form(r: Renderer, node: Node, depth: int) -> str:
        return opening + r.items(node.children, depth) + closing

    return form


def _joined(separator: str) -> Form:
    def form(r: Renderer, node: Node, depth: int) -> str:
        return separator.join(r.show(child, depth + 1) for child in meaningful(node.children))

    return form


def _tuple(r: Renderer, node: Node, depth: int) -> str:
    items = meaningful(node.children)
    if node.kind_id in g.TUPLE_PATTERNS and len(items) == 1 and node.children[-2].kind_id != g.COMMA:
        return r.show(items[0], depth + 1)
    shown = ", ".join(r.operand(item, _WALRUS, depth) for item in items)
    return f"({shown},)" if len(items) == 1 else f"({shown})"


def _subscript(r: Renderer, node: Node, depth: int) -> str:
    value, *index = meaningful(node.children)
    comma = any(child.kind_id == g.COMMA for child in node.children)
    if len(index) == 1:
        only = _bare(index[0])
        if only.kind_id in (g.TUPLE, g.TYPE_PARAMETER):
            inner = meaningful(only.children)
            if inner:
                index = inner
                comma = any(child.kind_id == g.COMMA for child in only.children)
    shown = r.items(index, depth)
    if len(index) == 1 and comma:
        shown += ","
    return f"{r.operand(value, _ATOM, depth)}[{shown}]"


def _slice(r: Renderer, node: Node, depth: int) -> str:
    return "".join(r.show(child, depth + 1) for child in node.children if child.kind_id not in g.EXTRAS)


def _binary(r: Renderer, node: Node, depth: int) -> str:
    sides = meaningful(node.children)
    operator = _operator(r, node)
    if len(sides) != 2:
        return r.words(node, depth)
    level = _OPERATORS.get(operator, _ATOM)
    left, right = (level + 1, _UNARY) if operator == "**" else (level, level + 1)
    return f"{r.operand(sides[0], left, depth)} {operator} {r.operand(sides[1], right, depth)}"


def _unary(r: Renderer, node: Node, depth: int) -> str:
    operand = r.operand(meaningful(node.children)[-1], _UNARY, depth)
    return r.text(node.children[0]) + operand


def _not(r: Renderer, node: Node, depth: int) -> str:
    return "not " + r.operand(meaningful(node.children)[-1], _NOT, depth)


def _await(r: Renderer, node: Node, depth: int) -> str:
    return "await " + r.operand(meaningful(node.children)[-1], _ATOM, depth)


def _comparison(r: Renderer, node: Node, depth: int) -> str:
    return " ".join(
        r.operand(child, _COMPARISON + 1, depth) if child.is_named else " ".join(r.text(child).split())
        for child in node.children
        if child.kind_id not in g.EXTRAS
    )


def _conditional(r: Renderer, node: Node, depth: int) -> str:
    parts = meaningful(node.children)
    if len(parts) != 3:
        return r.words(node, depth)
    then, test = (r.operand(part, _CONDITIONAL + 1, depth) for part in parts[:2])
    return f"{then} if {test} else {r.operand(parts[2], _LAMBDA, depth)}"


def _lambda(r: Renderer, node: Node, depth: int) -> str:
    *parameters, body = meaningful(node.children)
    shown = r.items(parameters[0].children, depth) if parameters else ""
    return f"lambda{' ' if shown else ''}{shown}: {r.operand(body, _LAMBDA, depth)}"


def _named(r: Renderer, node: Node, depth: int) -> str:
    name, value = meaningful(node.children)[:2]
    return f"{r.show(name, depth + 1)} := {r.operand(value, _LAMBDA, depth)}"


def _keyword(r: Renderer, node: Node, depth: int) -> str:
    name, value = meaningful(node.children)[:2]
    return f"{r.text(name)}={r.operand(value, _LAMBDA, depth)}"


def _star(r: Renderer, node: Node, depth: int) -> str:
    return r.text(node.children[0]) + r.operand(meaningful(node.children)[-1], _COMPARISON, depth)


def _pair(r: Renderer, node: Node, depth: int) -> str:
    return ": ".join(r.operand(child, _LAMBDA, depth) for child in meaningful(node.children))


def _comprehension(opening: str, closing: str) -> Form:
    def form(r: Renderer, node: Node, depth: int) -> str:
        element, *clauses = meaningful(node.children)
        parts = [r.operand(element, _WALRUS, depth), *(r.show(clause, depth + 1) for clause in clauses)]
        return opening + " ".join(parts) + closing

    return form


def _typed_parameter(r: Renderer, node: Node, depth: int) -> str:
    name, annotation = meaningful(node.children)[:2]
    return f"{r.show(name, depth + 1)}: {r.show(annotation, depth + 1)}"


def _default_parameter(r: Renderer, node: Node, depth: int) -> str:
    *name, value = meaningful(node.children)
    shown = ": ".join(r.show(part, depth + 1) for part in name)
    blank = " " if len(name) > 1 else ""
    return f"{shown}{blank}={blank}{r.operand(value, _LAMBDA, depth)}"


_WRAPPERS = g.kinds("parenthesized_expression", "parenthesized_list_splat", "type")
_BINARY = g.kinds("binary_operator", "boolean_operator", "union_type")
_NUMBERS = g.kinds("integer")
_GENERATOR = g.kind("generator_expression")
_BINDINGS: dict[int, int] = {
    kind: level
    for name, level in {
        "comparison_operator": _COMPARISON,
        "not_operator": _NOT,
        "unary_operator": _UNARY,
        "await": _AWAIT,
        "conditional_expression": _CONDITIONAL,
        "lambda": _LAMBDA,
        "named_expression": _WALRUS,
        "yield": _YIELD,
    }.items()
    for kind in g.kinds(name)
}
_BY_NAME: dict[str, Form] = {
    "parenthesized_expression": _wrapped,
    "parenthesized_list_splat": _wrapped,
    "type": _wrapped,
    "constrained_type": _joined(": "),
    "string": _string,
    "concatenated_string": _string,
    "integer": _number,
    "float": _number,
    "attribute": _attribute,
    "member_type": _attribute,
    "dotted_name": _joined("."),
    "call": _call,
    "argument_list": _arguments,
    "list": _bracketed("[", "]"),
    "list_pattern": _bracketed("[", "]"),
    "set": _bracketed("{", "}"),
    "dictionary": _bracketed("{", "}"),
    "type_parameter": _bracketed("[", "]"),
    "parameters": _bracketed("(", ")"),
    "tuple": _tuple,
    "tuple_pattern": _tuple,
    "expression_list": _tuple,
    "pattern_list": _tuple,
    "subscript": _subscript,
    "generic_type": _subscript,
    "slice": _slice,
    "binary_operator": _binary,
    "boolean_operator": _binary,
    "union_type": _binary,
    "unary_operator": _unary,
    "not_operator": _not,
    "await": _await,
    "comparison_operator": _comparison,
    "conditional_expression": _conditional,
    "lambda": _lambda,
    "named_expression": _named,
    "keyword_argument": _keyword,
    "list_splat": _star,
    "list_splat_pattern": _star,
    "splat_type": _star,
    "dictionary_splat": _star,
    "dictionary_splat_pattern": _star,
    "pair": _pair,
    "list_comprehension": _comprehension("[", "]"),
    "set_comprehension": _comprehension("{", "}"),
    "dictionary_comprehension": _comprehension("{", "}"),
    "generator_expression": _comprehension("(", ")"),
    "typed_parameter": _typed_parameter,
    "default_parameter": _default_parameter,
    "typed_default_parameter": _default_parameter,
}
_FORMS: dict[int, Form] = {kind: form for name, form in _BY_NAME.items() for kind in g.kinds(name)}
