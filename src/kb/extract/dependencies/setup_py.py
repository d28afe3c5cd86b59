"""setup.py, read without running it: literal lists in `setup(...)`, or names of such lists."""

from __future__ import annotations

from kb.extract import calls
from kb.extract.api import ParseView
from kb.extract.dependencies.facts import Declared, DependencyFacts, Unread, parse_requirement
from kb.extract.distributions import normalise
from kb.extract.expressions import brief, keywords, pairs, text_of
from kb.structure.facts import Expr, SpanRef

_LISTS = {"install_requires": "", "setup_requires": "build", "tests_require": "test", "requires": ""}
_MAKERS = frozenset({"setuptools", "distutils.core", "numpy.distutils.core", "skbuild"})


def is_setup(parse: ParseView) -> bool:
    """Whether the file imports `setup` and calls it."""
    imports = any(entry.module in _MAKERS for entry in parse.module.imports)
    return imports and b"setup" in calls.by_callee(parse)


def read_setup(parse: ParseView) -> DependencyFacts:
    """What the file's `setup(...)` calls declare; what they compute is said to be so."""
    reader = _Reader(parse)
    for node in calls.named(parse, {b"setup"}):
        options = keywords(parse.expr(node))
        span = parse.cite(node)
        reader.project = reader.project or normalise(text_of(options.get("name")) or "")
        for word, group in _LISTS.items():
            if word in options:
                reader.several(options[word], group, span)
        extras = reader.literal(options.get("extras_require"))
        if extras is not None and extras[0].kind == "dict":
            for key, value in pairs(extras[0]):
                reader.several(value or key, text_of(key) or "extra", extras[1] if extras[1] >= 0 else span)
        elif "extras_require" in options:
            reader.unread.append(Unread("extras_require is computed when the project is built", span))
    return DependencyFacts("setup-py", reader.project, tuple(reader.declared), (), tuple(reader.unread))


class _Reader:
    def __init__(self, parse: ParseView) -> None:
        self.parse = parse
        self.project = ""
        self.declared: list[Declared] = []
        self.unread: list[Unread] = []
        self._assigned = {
            entry.name: entry for entry in parse.module.assignments if entry.name and not entry.scope
        }

    def literal(self, expr: Expr | None) -> tuple[Expr, SpanRef] | None:
        """The expression, or what the module assigns to the name that it is, with that statement's span."""
        if expr is None:
            return None
        if expr.kind == "name" and expr.value in self._assigned:
            entry = self._assigned[expr.value]
            return (entry.value, self.parse.module_span(entry.span)) if entry.value is not None else None
        return expr, -1

    def several(self, expr: Expr, group: str, span: SpanRef) -> None:
        """A list of requirement strings; sums of lists are followed."""
        found = self.literal(expr)
        value, at = found if found is not None else (expr, -1)
        at = at if at >= 0 else span
        if value.kind == "binop" and value.value == "+":
            for item in value.items:
                self.several(item, group, at)
            return
        items = (
            value.items if value.kind in ("list", "tuple") else ((value,) if value.kind == "str" else None)
        )
        if items is None:
            self.unread.append(Unread(f"computed when the project is built: {brief(value)}", at))
            return
        for item in items:
            read = parse_requirement(item.value) if item.kind == "str" else None
            if read is not None:
                self.declared.append(read.at(at, group))
            else:
                self.unread.append(Unread(f"not a literal requirement: {brief(item)}", at))
