"""attrs classes: `attr.s` and `attrs.define`, with `attr.ib`/`field` or by annotation."""

from __future__ import annotations

from kb.extract.entities.annotations import Typed, related
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import brief, called, is_false, is_true, keywords, last, text_of
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr

_OLD = frozenset({"attr.s", "attr.attrs", "attr.attributes"})
_NEW = frozenset(
    f"{module}.{name}"
    for module in ("attr", "attrs")
    for name in ("define", "frozen", "mutable", "dataclass")
) | {"attr._next_gen.define", "attr._make.attrs"}
_FIELD_CALLS = frozenset({"ib", "attrib", "attr", "field"})
_CONSTRAINTS = frozenset(
    ["validator", "converter", "init", "repr", "eq", "order", "kw_only", "on_setattr", "metadata"]
)


class Attrs:
    """`attr.ib()`/`field()` assignments and, where the decorator collects them, annotated names."""

    id = "attrs"
    bases: frozenset[str] = frozenset()
    decorators = _OLD | _NEW
    constructors = frozenset({"attr.make_class", "attrs.make_class"})

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """A base counts if it is an attrs class itself."""
        return any(name in self.decorators for name, _ in base.decorators())

    def fields(self, source: ClassSource) -> list[Field]:
        """The attributes that the decorator would collect."""
        entries: dict[str, Assignment] = {}
        for entry in source.entries:
            read = Typed(entry.annotation)
            if not read.has("ClassVar") and (entry.annotation is not None or self._is_field(entry.value)):
                entries[entry.name] = entry
        if not self._by_annotation(source, list(entries.values())):
            entries = {name: entry for name, entry in entries.items() if self._is_field(entry.value)}
        return [self._field(source, entry) for entry in entries.values()]

    def _by_annotation(self, source: ClassSource, entries: list[Assignment]) -> bool:
        for name, expr in source.decorators():
            if name in self.decorators:
                given = keywords(expr).get("auto_attribs") if expr.kind == "call" else None
                if given is not None and not (given.kind == "const" and given.value == "None"):
                    return is_true(given)
                if name in _OLD:
                    return False
                # `define` decides by itself: one un-annotated `field()` and annotations no longer count.
                return all(entry.annotation is not None for entry in entries)
        return True

    def _is_field(self, value: Expr | None) -> bool:
        return value is not None and value.kind == "call" and last(value.value) in _FIELD_CALLS

    def _field(self, source: ClassSource | None, entry: Assignment) -> Field:
        annotation, default = entry.annotation, None
        constraints: dict[str, str] = {}
        alias = ""
        required = entry.value is None
        if self._is_field(entry.value) and entry.value is not None:
            options = keywords(entry.value)
            annotation = annotation or options.get("type")
            if "factory" in options:
                default = called(options["factory"])
            elif "default" in options:
                default = brief(options["default"])
            elif len(entry.value.items) > 1 and entry.value.items[1].kind != "kwarg":
                default = brief(entry.value.items[1])
            elif source is not None:
                default = self._default_method(source, entry.name)
            alias = text_of(options.get("alias")) or ""
            constraints = {name: brief(options[name]) for name in options if name in _CONSTRAINTS}
            required = default is None and not is_false(options.get("init"))
        elif entry.value is not None:
            default = brief(entry.value)
        read = Typed(annotation, source)
        return Field(
            entry.name,
            entry.span,
            read.text,
            required,
            read.nullable if annotation is not None else None,
            default,
            alias=alias,
            constraints=constraints,
            relations=related(source, read.expr) if source is not None else (),
        )

    def _default_method(self, source: ClassSource, name: str) -> str | None:
        for method in source.methods():
            if any(decorator.expr.value == f"{name}.default" for decorator in method.decorators):
                return f"{method.name}()"
        return None

    def shape(self, source: ClassSource) -> Shape:
        """An attrs class with its decorator's options."""
        notes: dict[str, object] = {}
        for name, expr in source.decorators():
            if name in self.decorators:
                if expr.kind == "call" and keywords(expr):
                    notes["options"] = {key: brief(value) for key, value in keywords(expr).items()}
                if last(name) == "frozen":
                    notes["frozen"] = True
                if expr.kind == "call" and "these" in keywords(expr):
                    notes["resolution"] = "dynamic"
        return Shape(self.id, "attrs class", tuple(self.fields(source)), notes)

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`make_class("Name", ["x", "y"])`, whose fields are all required, or with a dict of `ib()`s."""
        call = assignment.value
        if call is None or len(call.items) < 3:
            return None
        given = call.items[2]
        keys = given.items[::2] if given.kind == "dict" else given.items
        if given.kind not in ("dict", "list", "tuple") or any(key.kind != "str" for key in keys):
            return None
        if given.kind == "dict":
            entries = [
                Assignment(key.value, assignment.span, assignment.scope, value=value)
                for key, value in zip(keys, given.items[1::2], strict=True)
            ]
            fields = [self._field(None, entry) for entry in entries]
        else:
            fields = [Field(key.value, assignment.span, required=True) for key in keys]
        return Shape(self.id, "attrs class", tuple(fields))
