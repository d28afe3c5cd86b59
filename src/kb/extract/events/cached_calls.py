"""Functions whose results a call keeps (`memo = lru_cache(f)`, `cache_page(60)(view)`), told from one blob."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter

from kb.extract.events.facts import Mention, Seen
from kb.extract.expressions import argument, brief, dotted, last, positional
from kb.structure.facts import Expr

_DIRECT = frozenset({"lru_cache", "cache", "cached_property", "alru_cache"})
"""Take the function itself; all of them also take options first and the function then."""
_WRAPPERS = frozenset({"method_decorator"})
"""Django's: puts a decorator of functions on a method or on a method of a class."""
DECORATORS = _WRAPPERS


def of_call(seen: Seen, family: str) -> Iterator[Mention]:
    """The declaration that a call makes; nothing where it is handed no function.

    `handler` is the function as written, `bound` the symbol path of what keeps the results ("" for none).
    """
    node = seen.node
    if node is None:
        return
    outer = node.parent
    curried = outer is not None and outer.type == "call" and outer.child_by_field_name("function") == node
    if curried and outer is not None:
        if outer.parent is not None and outer.parent.type == "decorator":
            return
        given, whole = positional(seen.blob.parse.expr(outer)), outer
    elif seen.verb in _DIRECT:
        given, whole = (
            positional(seen.expr)
            or tuple(filter(None, [argument(seen.expr, "user_function") or argument(seen.expr, "func")])),
            node,
        )
    else:
        return
    if not given or not _may_be_function(seen, given[0]):
        return
    function = dotted(given[0]) if given[0].kind == "name" else brief(given[0])
    yield seen.mention(
        family,
        "declaration",
        subject=seen.expr.value,
        handler=function,
        bound=_bound(seen, whole),
        options=curried,
    )


def in_wrapper(seen: Seen, family: str, verbs: frozenset[str]) -> Iterator[Mention]:
    """`@method_decorator(cache_page(60), name="dispatch")`, also with a list of decorators."""
    given = argument(seen.expr, "decorator", 0) if seen.expr.kind == "call" else None
    several = given.items if given is not None and given.kind in ("list", "tuple") else (given,)
    for item in several:
        if item is not None and last(dotted(item)) in verbs:
            inner = Seen(seen.blob, item, last(dotted(item)), "", seen.scope, seen.node, seen.definition)
            yield inner.mention(family, "declaration", subject=dotted(item))


def _may_be_function(seen: Seen, given: Expr) -> bool:
    """Whether an argument is no size, time or text, as far as the blob tells."""
    if given.kind == "name":
        entry = seen.blob.assigned.get(given.value)
        return entry is None or entry.value is None or entry.value.kind not in ("num", "const", "str")
    return given.kind in ("attr", "call", "other", "subscript")


def _bound(seen: Seen, call: tree_sitter.Node) -> str:
    """The symbol path of the variable or attribute that a call's result is given to."""
    holder = call.parent
    if holder is None or holder.type != "assignment" or holder.child_by_field_name("right") != call:
        return ""
    left = holder.child_by_field_name("left")
    written = (left.text or b"").decode("utf-8", "replace") if left is not None else ""
    around = next((d for d in seen.blob.parse.module.definitions if d.symbol_path == seen.scope), None)
    if (
        written.startswith("self.")
        and written.count(".") == 1
        and around is not None
        and around.kind == "method"
    ):
        return f"{seen.scope.rpartition('.')[0]}.{written[5:]}"
    if not written.isidentifier():
        return ""
    if around is None or around.kind == "class":
        return f"{seen.scope}.{written}" if seen.scope else written
    return f"{seen.scope}.<locals>.{written}"
