"""Decorators that a project makes itself around those of a task framework, told from the file that makes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.extract import calls
from kb.extract.events.facts import Blob, Mention
from kb.extract.expressions import dotted, last, positional
from kb.structure.facts import Definition, Expr

NAMES = re.compile(r"task|actor|job|cron", re.IGNORECASE)
"""What such a decorator is called; anything else is not looked at."""
ROLE = "wrapper"


def wrappers(
    blob: Blob, family: str, frameworks: tuple[str, ...], verbs: frozenset[str]
) -> Iterator[Mention]:
    """A mention for each function, class or partial that hands on to one of `frameworks`; the verb names it.

    `verbs` are the frameworks' own decorators, which such a wrapper calls or applies.
    """
    given = {
        bound: framework
        for bound, entry in blob.imported.items()
        if not entry.level and (framework := _framework(entry.module, frameworks))
    }
    if not given:
        return
    parse = blob.parse
    found: dict[str, str] = {}
    used: dict[str, str] = {}  # of two frameworks in one wrapper, the one that is written first
    for node in calls.named(parse, frozenset(verb.encode() for verb in verbs) | _bound(given)):
        head = dotted(parse.expr(node)).partition(".")[0]
        if head in given:
            used.setdefault(parse.scope_of(node).partition(".")[0], given[head])
    for definition in blob.parse.module.definitions:
        if definition.parent >= 0 or not NAMES.search(definition.name):
            continue
        name = definition.symbol_path
        framework = _of_bases(definition, given, found) or used.get(name, "")
        framework = framework or _of_inner(blob, name, given, verbs)
        if framework and not definition.decorators:
            found[name] = framework
            span = parse.module_span(definition.header)
            yield Mention(family, ROLE, framework, span, name)
    for entry in blob.parse.module.assignments:
        if entry.name and not entry.scope and NAMES.search(entry.name) and entry.value is not None:
            framework = _of_value(entry.value, given, found, verbs)
            if framework:
                yield Mention(family, ROLE, framework, parse.module_span(entry.span), entry.name)


def _framework(module: str, frameworks: tuple[str, ...]) -> str:
    return next((name for name in frameworks if f"{module}.".startswith(f"{name}.")), "")


def _bound(given: dict[str, str]) -> frozenset[bytes]:
    return frozenset(name.encode() for name in given)


def _of_bases(definition: Definition, given: dict[str, str], found: dict[str, str]) -> str:
    """The framework that a class takes its decorator from."""
    names = [dotted(base).partition(".")[0] for base in definition.bases if base.kind != "kwarg"]
    return next((given.get(name) or found.get(name) or "" for name in names if name in given | found), "")


def _of_inner(blob: Blob, name: str, given: dict[str, str], verbs: frozenset[str]) -> str:
    """The framework of a decorator that the function puts on a function inside itself."""
    for inner in blob.parse.module.definitions:
        if inner.symbol_path.startswith(f"{name}.<locals>."):
            for decorator in inner.decorators:
                written = dotted(decorator.expr)
                if last(written) in verbs and written.partition(".")[0] in given:
                    return given[written.partition(".")[0]]
    return ""


def _of_value(value: Expr, given: dict[str, str], found: dict[str, str], verbs: frozenset[str]) -> str:
    """`partial(job, ...)`, `partial(OwnDecorator, ...)`, `rq.job`, `OwnDecorator(...)`."""
    name = dotted(value)
    if value.kind == "call" and last(name) == "partial" and positional(value):
        name = dotted(positional(value)[0])
    head = name.partition(".")[0]
    if head in found:
        return found[head]
    return (
        given[head]
        if head in given and (last(name) in verbs or (head == name and value.kind != "call"))
        else ""
    )
