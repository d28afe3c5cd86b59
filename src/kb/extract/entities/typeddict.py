"""TypedDict, class-based and functional, with `total`, `Required`, `NotRequired` and `ReadOnly`."""

from __future__ import annotations

from kb.extract.entities.annotations import Typed, annotated_entries, related
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import argument, is_false, pairs
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment

_NAMES = frozenset({"typing.TypedDict", "typing_extensions.TypedDict", "mypy_extensions.TypedDict"})


class TypedDicts:
    """A key is required if the class is total, unless its own annotation says otherwise."""

    id = "typeddict"
    bases = _NAMES
    decorators: frozenset[str] = frozenset()
    constructors = _NAMES

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """Keys of every base count."""
        return True

    def fields(self, source: ClassSource) -> list[Field]:
        """One field per key; totality is the declaring class's own."""
        total = not is_false(source.keyword("total"))
        return [
            Field(
                entry.name,
                entry.span,
                read.text,
                _required(read, total),
                read.nullable,
                constraints={"read_only": "True"} if read.has("ReadOnly") else {},
                relations=related(source, read.expr),
            )
            for entry, read in annotated_entries(source)
        ]

    def shape(self, source: ClassSource) -> Shape:
        """The keys, and whether the class is total."""
        total = not is_false(source.keyword("total"))
        return Shape(self.id, "typed dict", tuple(self.fields(source)), {"total": total})

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`TypedDict("Name", {"key": type}, total=False)`."""
        call = assignment.value
        given = argument(call, "fields", 1) if call is not None else None
        if call is None or given is None or given.kind != "dict":
            return None
        total = not is_false(argument(call, "total"))
        fields = []
        for key, value in pairs(given):
            if key.kind != "str" or value is None:
                return None
            read = Typed(value)
            fields.append(Field(key.value, assignment.span, read.text, _required(read, total), read.nullable))
        return Shape(self.id, "typed dict", tuple(fields), {"total": total})


def _required(read: Typed, total: bool) -> bool:
    if read.has("NotRequired"):
        return False
    return total or read.has("Required")
