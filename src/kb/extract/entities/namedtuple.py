"""Named tuples: `typing.NamedTuple` classes, and both functional forms, also as a base class."""

from __future__ import annotations

from kb.extract.entities.annotations import Typed, annotated_entries, related
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import argument, brief, keywords, last
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr, SpanRef

_CLASSES = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple"})
_FACTORIES = frozenset({"collections.namedtuple"})


class NamedTuples:
    """Fields in tuple order."""

    id = "namedtuple"
    bases = _CLASSES | {f"{name}()" for name in _CLASSES | _FACTORIES}
    decorators: frozenset[str] = frozenset()
    constructors = _CLASSES | _FACTORIES

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """A subclass of a named tuple keeps its fields."""
        return True

    def fields(self, source: ClassSource) -> list[Field]:
        """Annotated names of a `NamedTuple` class; the call's fields where the base is a call."""
        for base in source.bases():
            if base.call is not None and base.qualified in self.bases:
                return _from_call(base.call, None) or []
        if not any(base.qualified in _CLASSES for base in source.bases()):
            return []
        return [
            Field(
                entry.name,
                entry.span,
                read.text,
                entry.value is None,
                read.nullable,
                None if entry.value is None else brief(entry.value),
                relations=related(source, read.expr),
            )
            for entry, read in annotated_entries(source)
        ]

    def shape(self, source: ClassSource) -> Shape:
        """The tuple's fields."""
        return Shape(self.id, "named tuple", tuple(self.fields(source)))

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`namedtuple("P", "x y")` and `NamedTuple("P", [("x", int)])`; dynamic fields say so."""
        call = assignment.value
        if call is None or len(call.items) < 3:
            return None  # the name alone
        fields = _from_call(call, assignment.span)
        if fields is None:
            return Shape(self.id, "named tuple", (), {"resolution": "dynamic"}, 60)
        return Shape(self.id, "named tuple", tuple(fields))


def _from_call(call: Expr, span: SpanRef | None) -> list[Field] | None:
    typed_form = last(call.value) == "NamedTuple"
    given = argument(call, "fields" if typed_form else "field_names", 1)
    if given is None:
        return _by_keyword(call, span) if typed_form else None
    if typed_form:
        return _typed_fields(given, span)
    if given.kind == "str":
        names = given.value.replace(",", " ").split()
    elif given.kind in ("list", "tuple") and all(item.kind == "str" for item in given.items):
        names = [item.value for item in given.items]
    else:
        return None
    defaults = argument(call, "defaults")
    values = (
        [brief(item) for item in defaults.items] if defaults and defaults.kind in ("list", "tuple") else []
    )
    padded: list[str | None] = [None] * (len(names) - len(values)) + list(values)
    return [
        Field(name, span, "", value is None, None, value) for name, value in zip(names, padded, strict=False)
    ]


def _by_keyword(call: Expr, span: SpanRef | None) -> list[Field]:
    """The old form `NamedTuple("P", x=int, y=int)`."""
    reads = [(name, Typed(value)) for name, value in keywords(call).items()]
    return [Field(name, span, read.text, True, read.nullable) for name, read in reads]


def _typed_fields(given: Expr, span: SpanRef | None) -> list[Field] | None:
    fields = []
    for item in given.items if given.kind in ("list", "tuple") else ():
        if item.kind != "tuple" or len(item.items) != 2 or item.items[0].kind != "str":
            return None
        read = Typed(item.items[1])
        fields.append(Field(item.items[0].value, span, read.text, True, read.nullable))
    return fields if given.kind in ("list", "tuple") else None
