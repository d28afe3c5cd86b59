"""The keys that a call on a cache names, with what the same file says about the names in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import tree_sitter

from kb.extract.events.facts import Seen
from kb.extract.expressions import argument, pattern_of, positional
from kb.structure.facts import Expr

_DEPTH = 4
"""Names of names, and functions that call functions, are followed this far."""
_SEVERAL = frozenset("delete unlink exists touch mget delete_many get_many".split())
"""Take any number of keys one after the other, in Redis or in Flask-Caching."""
_TEXTS = frozenset({"str", "fstr", "binop"})
_COMPOSED = frozenset({"fstr", "binop", "call", "attr", "dict", "list", "tuple", "set"})


def given(seen: Seen) -> Expr | None:
    """The argument that holds the key or keys, None for a call without one."""
    return argument(seen.expr, "key", 0) or argument(seen.expr, "keys") or argument(seen.expr, "name")


def keys_of(seen: Seen) -> Iterator[str]:
    """Literal keys, or patterns with `*`: of one key, of a list of keys, of a mapping by key."""
    expr = given(seen)
    if expr is None:
        return
    expr = known(seen, expr)
    if expr.kind == "dict":
        items: tuple[Expr, ...] = expr.items[::2]
    elif expr.kind in ("list", "tuple", "set"):
        items = expr.items
    else:
        items = (expr,)
    if seen.verb in _SEVERAL:  # `redis.delete("a", "b")`; a second argument of Django's is a number
        items = (*items, *(item for item in positional(seen.expr)[1:] if known(seen, item).kind in _TEXTS))
    for item in items:
        key = pattern_of(known(seen, item))
        if key and any(char.isalnum() for char in key):
            yield key


def known(seen: Seen, expr: Expr, depth: int = 0) -> Expr:
    """The expression with every name replaced that the file binds once: constants, locals, key functions."""
    if depth > _DEPTH:
        return expr
    if expr.kind == "name":
        value = _value(seen, expr.value)
        return expr if value is None else known(seen, value, depth + 1)
    if expr.kind == "call" and expr.value in seen.blob.defined:
        made = _returned(seen, expr.value)
        if made is not None:
            return made
    if expr.kind in _COMPOSED and expr.items:
        return Expr(expr.kind, expr.value, tuple(known(seen, item, depth + 1) for item in expr.items))
    return expr


def _value(seen: Seen, name: str) -> Expr | None:
    """What a name is bound to: once in the enclosing function, in its class, or at the module's level."""
    head, _, attribute = name.rpartition(".")
    if head:
        scope = seen.scope.partition(".")[0] if head in ("self", "cls") else head
        entry = seen.blob.members.get((scope, attribute))
        return entry.value if entry is not None else None
    local = local_values(seen, name)
    if local:
        return local[0] if len(local) == 1 else None
    entry = seen.blob.assigned.get(name)
    return entry.value if entry is not None else None


def _returned(seen: Seen, name: str) -> Expr | None:
    """What a function of the module returns, if it has one `return` and that is a text with its own words."""
    for child in seen.blob.parse.root.named_children:
        node = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        label = node.child_by_field_name("name") if node is not None else None
        if node is None or node.type != "function_definition" or label is None or label.text != name.encode():
            continue
        returns = [inner for inner in _statements(node) if inner.type == "return_statement"]
        if len(returns) == 1 and returns[0].named_children:
            value = seen.blob.parse.expr(returns[0].named_children[0])
            constants = Seen(seen.blob, value, "", "", "")
            value = known(constants, value, _DEPTH - 1) if value.kind != "call" else value
            return value if pattern_of(value) else None
    return None


def local_values(seen: Seen, name: str) -> list[Expr]:
    """Everything that the enclosing function assigns to a name."""
    node = seen.node
    while node is not None and node.type not in ("function_definition", "lambda", "module"):
        node = node.parent
    if node is None or node.type != "function_definition":
        return []
    wanted, parse = name.encode(), seen.blob.parse
    found: list[Expr] = []
    for statement in _statements(node):
        if statement.type == "assignment":
            left, right = statement.child_by_field_name("left"), statement.child_by_field_name("right")
            if left is not None and right is not None and left.text == wanted:
                found.append(parse.expr(right))
    return found


def _statements(function: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Statements of a function's own body, those of functions inside it left out."""
    body = function.child_by_field_name("body")
    pending = deque(body.named_children if body is not None else ())
    while pending:
        current = pending.popleft()
        yield current
        if current.type.endswith(("statement", "clause", "block")):
            pending.extend(current.named_children)
