"""Dataclasses of the standard library and of pydantic, and msgspec structs, which declare alike."""

from __future__ import annotations

from kb.extract.entities.annotations import Typed, annotated_entries, related
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import brief, called, is_false, keywords, text_of
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment

_CONSTRAINTS = frozenset(["init", "repr", "compare", "hash", "kw_only", "metadata"])


class Dataclasses:
    """Annotated names are fields; `ClassVar`, `InitVar` and the `KW_ONLY` mark are not."""

    id = "dataclass"
    bases = frozenset({"msgspec.Struct"})
    decorators = frozenset(
        {"dataclasses.dataclass", "pydantic.dataclasses.dataclass", "pydantic.v1.dataclasses.dataclass"}
    )
    constructors = frozenset({"dataclasses.make_dataclass"})

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """A base counts if it is a dataclass (or a struct) itself."""
        if any(name in self.decorators for name, _ in base.decorators()):
            return True
        return any(ancestor.qualified in self.bases for ancestor in base.ancestry())

    def fields(self, source: ClassSource) -> list[Field]:
        """One field per annotated name."""
        return [
            self._field(source, entry, read)
            for entry, read in annotated_entries(source)
            if not read.has("InitVar", "KW_ONLY")
        ]

    def _field(self, source: ClassSource, entry: Assignment, read: Typed) -> Field:
        default = None
        constraints: dict[str, str] = {}
        alias = ""
        value = entry.value
        if value is not None and value.kind == "call" and source.callee(value) in ("field", "Field"):
            options = keywords(value)
            if "default" in options:
                default = brief(options["default"])
            elif "default_factory" in options:
                default = called(options["default_factory"])
            alias = text_of(options.get("name")) or ""
            constraints = {name: brief(options[name]) for name in options if name in _CONSTRAINTS}
            required = default is None and not is_false(options.get("init"))
        else:
            default = None if value is None else brief(value)
            required = default is None
        return Field(
            entry.name,
            entry.span,
            read.text,
            required,
            read.nullable,
            default,
            alias=alias,
            constraints=constraints,
            relations=related(source, read.expr),
        )

    def shape(self, source: ClassSource) -> Shape:
        """A dataclass with its decorator's options, and what `__init__` takes but does not keep."""
        notes: dict[str, object] = {}
        form = "struct"
        for name, expr in source.decorators():
            if name in self.decorators:
                form = "dataclass"
                options = (
                    {key: brief(value) for key, value in keywords(expr).items()}
                    if expr.kind == "call"
                    else {}
                )
                if options:
                    notes["options"] = options
        if form == "struct":
            given = {b.value: brief(b.items[0]) for b in source.definition.bases if b.kind == "kwarg"}
            if given:
                notes["options"] = given
        init_only = [entry.name for entry, read in annotated_entries(source) if read.has("InitVar")]
        if init_only:
            notes["init_only"] = init_only
        return Shape(self.id, form, tuple(self.fields(source)), notes)

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`make_dataclass("Name", ["x", ("y", int), ("z", int, field(default=1))])`."""
        call = assignment.value
        if call is None or len(call.items) < 3 or call.items[2].kind not in ("list", "tuple"):
            return None
        fields = []
        for item in call.items[2].items:
            if item.kind == "str":
                fields.append(Field(item.value, assignment.span, "Any", True))
            elif item.kind == "tuple" and len(item.items) >= 2 and item.items[0].kind == "str":
                read = Typed(item.items[1])
                default = brief(item.items[2]) if len(item.items) > 2 else None
                fields.append(
                    Field(
                        item.items[0].value,
                        assignment.span,
                        read.text,
                        default is None,
                        read.nullable,
                        default,
                    )
                )
            else:
                return None
        return Shape(self.id, "dataclass", tuple(fields))
