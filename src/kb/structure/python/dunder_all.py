"""`__all__`, as far as it can be read statically."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import tree_sitter

from kb.structure.facts import Expr, SpanRef
from kb.structure.python import grammar as g
from kb.structure.python.expressions import Expressions
from kb.structure.python.outline import Outline, Place
from kb.structure.python.render import meaningful

Node: TypeAlias = tree_sitter.Node

_NAME = b"__all__"


class Exported(NamedTuple):
    """What a module says that it exports."""

    names: tuple[str, ...] | None = None
    dynamic: bool = False
    spans: tuple[SpanRef, ...] = ()


class _Change(NamedTuple):
    """One statement that sets, extends or otherwise changes `__all__`."""

    start: int
    operation: str
    value: Expr | None
    ref: Callable[[], SpanRef]


def read_dunder_all(
    expressions: Expressions,
    outline: Outline,
    refer: Callable[[Place], SpanRef],
    cite: Callable[[Node], SpanRef],
    scope_of: Callable[[Node], str],
) -> Exported:
    """The names, in order; `dynamic` where some change to them could not be read."""
    if _NAME not in expressions.source:
        return Exported()
    changes = [*_assigned(expressions, outline, refer), *_called(expressions, outline, cite, scope_of)]
    if not changes:
        return Exported()
    names: list[str] = []
    dynamic = False
    for change in sorted(changes, key=lambda change: change.start):
        said = _strings(change.value)
        if said is None:
            dynamic = True
        elif change.operation == "remove":
            names = [name for name in names if name not in said]
        elif change.operation == "=":
            names = said
        else:
            names = names + said
    spans = tuple(dict.fromkeys(change.ref() for change in changes))
    return Exported(tuple(dict.fromkeys(names)), dynamic, spans)


def _assigned(expressions: Expressions, outline: Outline, refer: Callable[[Place], SpanRef]) -> list[_Change]:
    changes = []
    for record in outline.assignments:
        node = record.node
        if record.scope or expressions.source[node.start_byte : node.start_byte + len(_NAME)] != _NAME:
            continue
        target, *rest = meaningful(node.children)
        if target.kind_id != g.IDENTIFIER or expressions.text(target) != "__all__" or not rest:
            continue
        value = rest[-1]
        if value.kind_id == g.TYPE:
            continue
        operation = "+=" if node.kind_id == g.AUGMENTED_ASSIGNMENT else "="
        changes.append(
            _Change(node.start_byte, operation, expressions.build(value), partial(refer, record.place))
        )
    return changes


def _called(
    expressions: Expressions,
    outline: Outline,
    cite: Callable[[Node], SpanRef],
    scope_of: Callable[[Node], str],
) -> list[_Change]:
    changes = []
    for call in outline.calls:
        if not expressions.source.startswith(_NAME, call.start_byte) or scope_of(call):
            continue
        built = expressions.build(call)
        name, _, method = built.value.rpartition(".")
        if name != "__all__" or method not in _METHODS:
            continue
        value = built.items[1] if len(built.items) == 2 else None
        if value is not None and method != "extend":
            value = Expr("list", "", (value,))
        changes.append(_Change(call.start_byte, _METHODS[method], value, partial(cite, call)))
    return changes


_METHODS = {"extend": "+=", "append": "+=", "remove": "remove", "insert": "unread", "pop": "unread"}


def _strings(value: Expr | None) -> list[str] | None:
    """The strings of a literal sequence, or of a sum of such; None for anything else."""
    if value is None:
        return None
    if value.kind in ("list", "tuple", "set") and all(item.kind == "str" for item in value.items):
        return [item.value for item in value.items]
    if value.kind == "binop" and value.value == "+":
        left, right = (_strings(side) for side in value.items)
        return None if left is None or right is None else left + right
    return None
