"""Parameters and decorators as facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import tree_sitter

from kb.structure.facts import Decorator, Param
from kb.structure.python import grammar as g
from kb.structure.python.expressions import Expressions
from kb.structure.python.render import meaningful, render

Node: TypeAlias = tree_sitter.Node

LARGEST_DECORATOR = 256
"""Nodes of a decorator that are read; a larger one is left as unread."""
LARGEST_DEFAULT = 64
"""Nodes of a default value that are read."""

_POSITIONAL_ONLY_END = g.kinds("positional_separator")
_KEYWORD_ONLY_START = g.kinds("keyword_separator")
_VARARG = g.kinds("list_splat_pattern")
_KWARG = g.kinds("dictionary_splat_pattern")
_DEFAULTS = g.kinds("default_parameter", "typed_default_parameter")
_TYPED = g.kinds("typed_parameter", "typed_default_parameter")


def parameters_of(expressions: Expressions, parameters: Node) -> tuple[Param, ...]:
    """The parameters of a function or lambda, in order."""
    found: list[Param] = []
    kind = "positional"
    for node in meaningful(parameters.children):
        if node.kind_id in _POSITIONAL_ONLY_END:
            found = [Param(p.name, "positional_only", p.annotation, p.default) for p in found]
        elif node.kind_id in _KEYWORD_ONLY_START:
            kind = "keyword_only"
        else:
            param = _parameter(expressions, node, kind)
            if param.kind == "vararg":
                kind = "keyword_only"
            found.append(param)
    return tuple(found)


def _parameter(expressions: Expressions, node: Node, kind: str) -> Param:
    if node.kind_id == g.IDENTIFIER:
        return Param(expressions.text(node), kind)
    annotation = default = None
    name = node
    if node.kind_id in _DEFAULTS or node.kind_id in _TYPED:
        name, *rest = meaningful(node.children)
        if node.kind_id in _TYPED and rest:
            annotation = expressions.build(rest.pop(0))
        if rest:
            default = expressions.build_bounded(rest[0], LARGEST_DEFAULT)
    if name.kind_id in _VARARG:
        kind = "vararg"
    elif name.kind_id in _KWARG:
        kind = "kwarg"
    shown = render(expressions.source, name).lstrip("*")
    return Param(shown, kind, annotation, default)


def decorators_of(expressions: Expressions, nodes: Iterable[Node]) -> tuple[Decorator, ...]:
    """Decorators, outermost first."""
    return tuple(_decorator(expressions, held) for node in nodes for held in meaningful(node.children)[:1])


def _decorator(expressions: Expressions, node: Node) -> Decorator:
    built = expressions.build_bounded(node, LARGEST_DECORATOR)
    return Decorator(built, built.value if built.kind == "name" else render(expressions.source, node))
