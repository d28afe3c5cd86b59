"""Expressions of facts as text, and the small questions that extractors ask of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kb.structure.facts import Expr

LONGEST = 200
"""A default or constraint longer than this is cut, and says so with an ellipsis."""

_BRACKETS = {"list": ("[", "]"), "tuple": ("(", ")"), "set": ("{", "}"), "dict": ("{", "}")}
_TOKEN = re.compile(
    r"""\s*(?:([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|(-?\d[\w.]*)|("[^"]*"|'[^']*')|(\.\.\.|[\[\](),|]))"""
)
_KINDS = ("name", "num", "str", "op")
_CONSTANTS = frozenset({"None", "True", "False", "..."})


def render(expr: Expr | None) -> str:
    """The expression as one line of normalised source; "" for None."""
    if expr is None:
        return ""
    kind = expr.kind
    value = expr.value
    items = expr.items
    if kind == "str":
        return json.dumps(value, ensure_ascii=False)
    if kind == "bytes":
        return "b" + json.dumps(value, ensure_ascii=True)
    if kind == "fstr":
        return 'f"' + "".join(p.value if p.kind == "str" else "{" + render(p) + "}" for p in items) + '"'
    if kind in _BRACKETS:
        return _render_display(expr)
    if kind == "call":
        return f"{render(items[0])}({', '.join(map(render, items[1:]))})"
    if kind == "kwarg":
        return f"{value}={render(items[0])}"
    if kind in ("star", "dstar"):
        return ("*" if kind == "star" else "**") + render(items[0])
    if kind == "attr":
        return f"{render(items[0])}.{value}"
    if kind == "subscript":
        return f"{render(items[0])}[{', '.join(map(render, items[1:]))}]"
    if kind == "binop":
        return f"{render(items[0])} {value} {render(items[1])}"
    if kind == "unary":
        return (f"{value} " if value.isalpha() else value) + render(items[0])
    return value


def _render_display(expr: Expr) -> str:
    opening, closing = _BRACKETS[expr.kind]
    if expr.kind != "dict":
        inner = ", ".join(map(render, expr.items))
        return opening + inner + ("," if expr.kind == "tuple" and len(expr.items) == 1 else "") + closing
    parts = [
        render(key) if value is None else f"{render(key)}: {render(value)}" for key, value in pairs(expr)
    ]
    return opening + ", ".join(parts) + closing


def brief(expr: Expr | None) -> str:
    """`render`, cut at `LONGEST` characters with an ellipsis."""
    text = render(expr)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def called(factory: Expr) -> str:
    """A call of what an expression gives, on one line: `list()`, `(lambda: now())()`."""
    written = brief(factory)
    return f"({written})()" if factory.kind == "other" else f"{written}()"


def pairs(expr: Expr) -> Iterator[tuple[Expr, Expr | None]]:
    """Key and value of each entry of a `dict`; a `**x` entry has no value."""
    rest = iter(expr.items)
    for key in rest:
        yield (key, None) if key.kind == "dstar" else (key, next(rest, None))


def positional(call: Expr) -> tuple[Expr, ...]:
    """Positional arguments of a `call` (a `*x` among them stays a `star`)."""
    return tuple(item for item in call.items[1:] if item.kind not in ("kwarg", "dstar"))


def keywords(call: Expr) -> dict[str, Expr]:
    """Keyword arguments of a `call`, in order."""
    return {item.value: item.items[0] for item in call.items[1:] if item.kind == "kwarg"}


def argument(call: Expr, name: str, place: int | None = None) -> Expr | None:
    """The argument given by keyword `name`, else the one at positional `place`, else None."""
    found = keywords(call).get(name)
    if found is None and place is not None:
        given = positional(call)
        found = given[place] if place < len(given) else None
    return found


def dotted(expr: Expr | None) -> str:
    """The dotted name of a `name`, of a call's callee, of a subscript's object; "" for the rest."""
    if expr is None:
        return ""
    if expr.kind in ("name", "call"):
        return expr.value
    if expr.kind == "subscript":
        return dotted(expr.items[0])
    return ""


def last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def is_true(expr: Expr | None) -> bool:
    """Whether the expression is the literal `True`."""
    return expr is not None and expr.kind == "const" and expr.value == "True"


def is_false(expr: Expr | None) -> bool:
    """Whether the expression is the literal `False`."""
    return expr is not None and expr.kind == "const" and expr.value == "False"


def is_none(expr: Expr | None) -> bool:
    """Whether the expression is the literal `None`."""
    return expr is not None and expr.kind == "const" and expr.value == "None"


def text_of(expr: Expr | None) -> str | None:
    """The value of a string literal, None for anything else."""
    return expr.value if expr is not None and expr.kind == "str" else None


def worded(expr: Expr) -> str:
    """A string literal's text without quotes, anything else as `brief` has it: for names and words of a framework."""
    return text_of(expr) or brief(expr)


def texts_of(expr: Expr | None) -> list[str] | None:
    """The strings of a literal list, tuple or set that holds only strings; None for anything else."""
    if expr is None or expr.kind not in ("list", "tuple", "set"):
        return None
    found = [item.value for item in expr.items if item.kind == "str"]
    return found if len(found) == len(expr.items) else None


def pattern_of(expr: Expr | None) -> str | None:
    """A literal string, or one with `*` for each part that is not literal; None with no literal part.

    Reads f-strings, `"user:%s" % x`, `"user:{}".format(x)` and `"user:" + x`.
    """
    if expr is None:
        return None
    text = _pattern(expr)
    folded = re.sub(r"\*+", "*", text)
    return folded if folded.strip("*") else None


def _pattern(expr: Expr) -> str:
    if expr.kind == "str":
        return expr.value
    if expr.kind == "fstr":
        return "".join(part.value if part.kind == "str" else "*" for part in expr.items)
    if expr.kind == "binop" and expr.value == "+":
        return _pattern(expr.items[0]) + _pattern(expr.items[1])
    if expr.kind == "binop" and expr.value == "%" and expr.items[0].kind == "str":
        return re.sub(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]", "*", expr.items[0].value)
    if expr.kind == "call" and expr.items[0].kind == "attr" and expr.items[0].value == "format":
        owner = expr.items[0].items[0]
        if owner.kind == "str":
            return re.sub(r"\{[^{}]*\}", "*", owner.value)
    return "*"


def parse_annotation(text: str) -> Expr:
    """A type written as a string (`"list[Order] | None"`) as an `Expr`; kind `other` if it is no type."""
    tokens: list[tuple[str, str]] = []
    at = 0
    stripped = text.strip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            return Expr("other", stripped)
        at = match.end()
        kind = _KINDS[(match.lastindex or 1) - 1]
        tokens.append((kind, match.group(match.lastindex or 1)))
    parser = _AnnotationParser(tokens)
    try:
        parsed = parser.union()
    except ValueError:
        return Expr("other", stripped)
    return parsed if parser.at == len(tokens) else Expr("other", stripped)


class _AnnotationParser:
    """Recursive descent over `a.b`, `X[...]`, `X | Y`, lists and literals; ValueError on anything else."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def union(self) -> Expr:
        left = self.term()
        while self.peek() == ("op", "|"):
            self.take()
            left = Expr("binop", "|", (left, self.term()))
        return left

    def term(self) -> Expr:
        kind, value = self.take()
        if kind == "name":
            base = Expr("const", value) if value in _CONSTANTS else Expr("name", value)
        elif kind == "num":
            base = Expr("num", value)
        elif kind == "str":
            base = Expr("str", value[1:-1])
        elif (kind, value) == ("op", "..."):
            base = Expr("const", "...")
        elif (kind, value) == ("op", "["):
            base = Expr("list", "", self.several("]"))
        elif (kind, value) == ("op", "("):
            inner = self.several(")")
            base = inner[0] if len(inner) == 1 else Expr("tuple", "", inner)
        else:
            raise ValueError(value)
        while self.peek() == ("op", "["):
            self.take()
            base = Expr("subscript", "", (base, *self.several("]")))
        return base

    def several(self, closing: str) -> tuple[Expr, ...]:
        found: list[Expr] = []
        while self.peek() != ("op", closing):
            found.append(self.union())
            if self.peek() == ("op", ","):
                self.take()
            elif self.peek() != ("op", closing):
                raise ValueError(closing)
        self.take()
        return tuple(found)


def typed(expr: Expr | None) -> Expr | None:
    """An annotation with the types that it writes as strings parsed, except inside `Literal[...]`."""
    if expr is None:
        return None
    if expr.kind == "str":
        parsed = parse_annotation(expr.value)
        return typed(parsed) if parsed.kind != "str" else parsed
    if not expr.items or (expr.kind == "subscript" and last(dotted(expr)) == "Literal"):
        return expr
    if expr.kind == "subscript" and last(dotted(expr)) == "Annotated":
        first = typed(expr.items[1]) if len(expr.items) > 1 else None
        return expr if first is None else Expr(expr.kind, expr.value, (expr.items[0], first, *expr.items[2:]))
    if expr.kind in ("subscript", "binop", "list", "tuple"):
        return Expr(expr.kind, expr.value, tuple(typed(item) or item for item in expr.items))
    return expr


def without_none(expr: Expr) -> tuple[Expr, bool]:
    """The type without its `None` alternative, and whether it had one (`Optional`, `Union`, `|`)."""
    if expr.kind == "subscript" and len(expr.items) > 1:
        head = last(dotted(expr))
        if head == "Optional":
            return without_none(expr.items[1])[0], True
        if head == "Union":
            rest = tuple(item for item in expr.items[1:] if not is_none(item))
            found = len(rest) < len(expr.items) - 1
            return (rest[0] if len(rest) == 1 else Expr("subscript", "", (expr.items[0], *rest))), found
    if expr.kind == "binop" and expr.value == "|":
        left, right = expr.items
        if is_none(right):
            return without_none(left)[0], True
        if is_none(left):
            return without_none(right)[0], True
        inner, found = without_none(left)
        if found:
            return Expr("binop", "|", (inner, right)), True
    return expr, False


_COLLECTIONS = frozenset(
    [
        "list",
        "List",
        "set",
        "Set",
        "frozenset",
        "FrozenSet",
        "tuple",
        "Tuple",
        "Sequence",
        "MutableSequence",
        "Iterable",
        "Collection",
        "dict",
        "Dict",
        "Mapping",
        "MutableMapping",
        "defaultdict",
        "DefaultDict",
        "deque",
        "Deque",
        "AbstractSet",
        "MutableSet",
        "WriteOnlyMapped",
        "DynamicMapped",
        "AppenderQuery",
        "InstrumentedList",
        "OrderedDict",
    ]
)


def names_in_type(expr: Expr | None, many: bool = False) -> Iterator[tuple[str, bool]]:
    """Dotted names that a type mentions, each with whether it stands inside a collection."""
    if expr is None:
        return
    if expr.kind == "name":
        yield expr.value, many
    elif expr.kind == "subscript":
        head = last(dotted(expr))
        if head == "Literal":
            return
        yield dotted(expr), many
        inner = expr.items[1:2] if head == "Annotated" else expr.items[1:]
        for item in inner:
            yield from names_in_type(item, many or head in _COLLECTIONS)
    elif expr.kind in ("binop", "list", "tuple"):
        for item in expr.items:
            yield from names_in_type(item, many)
