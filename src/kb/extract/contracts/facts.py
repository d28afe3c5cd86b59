"""What one file says of routes by itself: the calls that matter, and where each of them stands.

A `Site` is one call of a framework's vocabulary (a constructor, a decorator, an include, a url entry)
with what only the syntax tree knows: which name its value goes to, which other call holds it, which
loops run it. Nothing is resolved here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from kb.extract.api import FactOutput
from kb.extract.expressions import dotted, last, positional, text_of
from kb.structure.facts import Decorator, Expr, ModuleFacts, SpanRef

SOURCE = "contracts"

_COMMON = frozenset({"register", "include", "extend"})
"""Words of the vocabulary that many files have for other reasons."""
CALLEE = re.compile(r"((?:\w+\.)*(\w+))\(")
"""The callee of a call as written: whole, and its last part."""
RETURNED = "<return>"
JOIN = "join"
"""Kind of the `expr` of a site that is no call: a list of routes takes another one in (`items[0]`)."""
URLCONF = "urlconf"
"""Kind of the `expr` of a site that is no call: a settings module names the URL configuration (`value`)."""


class Loop(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """`for target in iterable` around a call."""

    target: Expr
    iterable: Expr


class Site(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One call of a framework's vocabulary, or an assignment that does the same (`JOIN`, `URLCONF`)."""

    span: SpanRef
    expr: Expr
    scope: str = ""
    handler: str = ""
    """For a decorator: symbol_path of what it decorates."""
    which: int = 0
    """For a decorator: its definition is the n-th of that symbol_path."""
    target: str = ""
    """Name that the call's value is assigned to (`app`, `self.app`), or `<return>`."""
    owner: str = ""
    """Name of the list that the call is an element of (`urlpatterns`, `routes`)."""
    container: int = -1
    """Index of the innermost site that the call is an argument of."""
    slot: str = ""
    """Keyword of `container` under which it is; "" for a positional argument."""
    loops: tuple[Loop, ...] = ()
    """Innermost first."""
    branch: str = ""
    """`if` inside a conditional, `comprehension` inside one; "" otherwise."""
    applied: Expr | None = None
    """What a decorator is called with where it is no decorator: `view` of `app.get("/x")(view)`."""

    @property
    def decorates(self) -> bool:
        """Whether the call is a decorator, in the usual form or applied by hand."""
        return bool(self.handler) or self.applied is not None


class Local(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A name assigned inside a function that holds sites."""

    scope: str
    name: str
    value: Expr


class ContractFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Fact row of source `contracts`."""

    sites: tuple[Site, ...] = ()
    """In source order; a container comes before what it holds."""
    locals: tuple[Local, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    """(original name, other name) of routers and the like that the file renames."""


class Vocabulary:
    """The names that make a call a site, with quick ways to see that a file has none."""

    def __init__(self, callees: Iterable[str], decorators: Iterable[str]) -> None:
        self.callees = frozenset(callees)
        self.decorators = frozenset(decorators)
        telling = {name for name in self.callees if len(name) > 6} - _COMMON
        self._markers = tuple(sorted(name.encode() for name in telling | {"django.urls", "django.conf.urls"}))
        self._words = re.compile(
            rb"\b(?:" + b"|".join(sorted(name.encode() for name in self.callees)) + rb")\s*\("
        )

    def occurs_in(self, source: bytes) -> bool:
        """Whether the text can hold a call of one of `callees`."""
        if any(marker in source for marker in self._markers):
            return True
        if b"urlpatterns" in source:
            return True
        return b"rout" in source.lower() and self._words.search(source) is not None


def decorator_name(decorator: Decorator) -> str:
    """Last part of a decorator's callee, also where the decorator is larger than facts keep."""
    if decorator.expr.kind != "other":
        return last_of(decorator.expr)
    callee = CALLEE.match(decorator.source)
    return callee.group(2) if callee is not None else ""


def is_route_decorator(expr: Expr, names: frozenset[str]) -> bool:
    """Whether `@expr` reads like one: a method of something, first told a path or nothing literal."""
    if last_of(expr) not in names or (expr.value and "." not in expr.value):
        return False
    first = next(iter(positional(expr)), None)
    text = text_of(first)
    return text is None or text == "" or text.startswith("/") or "{" in text or "<" in text


def last_of(expr: Expr) -> str:
    """Last part of a call's callee, also where that is an attribute of an expression."""
    if expr.kind != "call":
        return ""
    if expr.value:
        return last(expr.value)
    return expr.items[0].value if expr.items and expr.items[0].kind == "attr" else ""


def names_of(expr: Expr | None, module: ModuleFacts) -> list[str]:
    """Simple names under which another file may know what `expr` means; empty where it cannot be told."""
    if expr is None:
        return []
    if expr.kind in ("name", "call") and expr.value:
        found = {last(expr.value)}
        if expr.value.endswith(".urls"):  # of a router of Django REST framework, or a module of that name
            found.add(last(expr.value.removesuffix(".urls")))
        if "." not in expr.value:
            found.update(i.name for i in module.imports if i.alias == expr.value and i.name)
        return sorted(found)
    if expr.kind == "attr":
        return [expr.value]
    return []


def target_keys(site: Site, expr: Expr | None, module: ModuleFacts) -> Iterator[str]:
    """Inverse keys of an include: one for each name that its target may have, `include:*` where unknown."""
    if expr is None:
        return
    variables = {name for loop in site.loops for name in _bound(loop.target)}
    head = dotted(expr).partition(".")[0]
    if head not in variables:
        names = names_of(expr, module)
        yield from (f"include:{name}" for name in names) if names else ("include:*",)
        return
    attribute = dotted(expr).partition(".")[2]
    for loop in site.loops:
        literal = loop.iterable if loop.iterable.kind in ("list", "tuple", "set", "dict") else None
        if attribute:
            yield f"include:{last(attribute)}"
        elif literal is None:
            yield "include:*"
        else:
            for element in _leaves(literal):
                yield from (f"include:{name}" for name in names_of(element, module))


def _bound(target: Expr) -> Iterator[str]:
    if target.kind == "name":
        yield target.value
    for item in target.items:
        yield from _bound(item)


def _leaves(expr: Expr) -> Iterator[Expr]:
    if expr.kind in ("list", "tuple", "set", "dict", "kwarg", "star"):
        for item in expr.items:
            yield from _leaves(item)
    elif expr.kind in ("name", "call", "attr"):
        yield expr


def output(found: ContractFacts | None, keys: Iterable[str]) -> FactOutput | None:
    """The row to store, with its own keys and those of its aliases."""
    if found is None:
        return None
    aliased = (f"alias:{original}" for original, _ in found.aliases)
    return FactOutput(found, tuple(sorted({*keys, *aliased})))
