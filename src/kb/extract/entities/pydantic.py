"""Pydantic models (v1 and v2 spellings), settings and SQLModel models without a table."""

from __future__ import annotations

from kb.extract.entities.annotations import Typed, annotated_entries, related
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import (
    argument,
    brief,
    called,
    dotted,
    keywords,
    last,
    positional,
    render,
    text_of,
)
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr

_NOT_CONSTRAINTS = frozenset(
    [
        "default",
        "default_factory",
        "alias",
        "title",
        "description",
        "examples",
        "validation_alias",
        "serialization_alias",
        "json_schema_extra",
        "repr",
        "exclude",
        "include",
        "init",
        "kw_only",
    ]
)
_FIELD = frozenset({"Field", "FieldInfo"})
_CONSTRAINED = frozenset(
    ["constr", "conint", "confloat", "condecimal", "conlist", "conset", "conbytes", "condate", "confrozenset"]
)


class Pydantic:
    """Fields by annotation; `Field(...)` as the default or in `Annotated` says the rest."""

    id = "pydantic"
    bases = frozenset(
        [
            "pydantic.BaseModel",
            "pydantic.main.BaseModel",
            "pydantic.v1.BaseModel",
            "pydantic.RootModel",
            "pydantic.root_model.RootModel",
            "pydantic.generics.GenericModel",
            "pydantic.BaseSettings",
            "pydantic_settings.BaseSettings",
            "pydantic.v1.BaseSettings",
            "pydantic_settings.main.BaseSettings",
            "beanie.Document",
            "odmantic.Model",
            "fastapi_users.schemas.BaseUser",
            "fastapi_users.schemas.BaseUserCreate",
            "fastapi_users.schemas.BaseUserUpdate",
            "ninja.Schema",
            "ninja.schema.Schema",
        ]
    )
    decorators: frozenset[str] = frozenset()
    constructors = frozenset({"pydantic.create_model"})

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """Annotated fields of every internal base count (a plain mixin's too, as in v1)."""
        return True

    def fields(self, source: ClassSource) -> list[Field]:
        """One field per annotated name that is public."""
        found = [
            self._field(source, entry, read)
            for entry, read in annotated_entries(source)
            if not entry.name.startswith("_") and entry.name != "model_config"
        ]
        for base in source.definition.bases:
            # RootModel[list[Item]]: the type is the base's own parameter.
            if base.kind == "subscript" and last(source.qualified(base)) == "RootModel" and not found:
                read = Typed(base.items[1])
                hints = related(source, read.expr)
                found.append(Field("root", None, read.text, True, read.nullable, relations=hints))
        return found

    def _field(self, source: ClassSource, entry: Assignment, read: Typed) -> Field:
        constraints: dict[str, str] = {}
        calls: list[Expr] = []
        default: Expr | None = None
        for item in read.metadata:
            if item.kind == "call" and read.read_by(item, source).callee(item) in _FIELD:
                calls.append(item)
            elif item.kind == "call" and last(item.value) == "StringConstraints":
                constraints.update((name, brief(value)) for name, value in keywords(item).items())
            else:
                constraints.setdefault("annotated", "")
                constraints["annotated"] = ", ".join(filter(None, (constraints["annotated"], brief(item))))
        if read.expr is not None and read.expr.kind == "call" and last(read.expr.value) in _CONSTRAINED:
            constraints.update((name, brief(value)) for name, value in keywords(read.expr).items())
        if entry.value is not None and entry.value.kind == "call" and source.callee(entry.value) in _FIELD:
            calls.append(entry.value)
        elif entry.value is not None and render(entry.value) != "...":
            default = entry.value
        text = None if default is None else brief(default)
        alias = description = ""
        for call in calls:
            text = self._default(call) if self._default(call) is not None else text
            options = keywords(call)
            alias = text_of(options.get("validation_alias")) or text_of(options.get("alias")) or alias
            description = text_of(options.get("description")) or description
            constraints.update(
                (name, brief(value))
                for name, value in options.items()
                if name not in _NOT_CONSTRAINTS or (name == "validation_alias" and value.kind == "call")
            )
        return Field(
            entry.name,
            entry.span,
            read.text,
            required=text is None,
            nullable=read.nullable,
            default=text,
            alias=alias,
            constraints=constraints,
            description=description,
            relations=related(source, read.expr),
            aliases=tuple(read.aliases),
        )

    def _default(self, call: Expr) -> str | None:
        factory = argument(call, "default_factory")
        if factory is not None:
            return called(factory)
        given = argument(call, "default", 0)
        return None if given is None or render(given) == "..." else brief(given)

    def shape(self, source: ClassSource) -> Shape:
        """A model, settings or root model, with its configuration."""
        names = {base.qualified for base in source.ancestry()}
        form = "model"
        if any(last(name) == "BaseSettings" for name in names):
            form = "settings"
        elif any(last(name) == "RootModel" for name in names):
            form = "root model"
        notes: dict[str, object] = {}
        config = {name: brief(entry.value) for name, entry in source.nested("Config").items()}
        for entry in source.entries:
            if entry.name == "model_config" and entry.value is not None:
                if entry.value.kind == "call":
                    config.update((name, brief(value)) for name, value in keywords(entry.value).items())
                else:
                    config["model_config"] = brief(entry.value)
        if config:
            notes["config"] = config
        return Shape(self.id, form, tuple(self.fields(source)), notes)

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`create_model("Name", field=(type, default))`."""
        call = assignment.value
        if call is None or not positional(call):
            return None
        fields = []
        for name, value in keywords(call).items():
            if name.startswith("__"):
                continue
            pair = value.items if value.kind == "tuple" and len(value.items) == 2 else (value, None)
            read = Typed(pair[0])
            required = pair[1] is not None and render(pair[1]) == "..."
            default = None if required else brief(pair[1])
            fields.append(Field(name, assignment.span, read.text, required, read.nullable, default or None))
        dynamic = any(item.kind == "dstar" for item in call.items[1:])
        notes = {"resolution": "dynamic"} if dynamic else {}
        said = keywords(call).get("__base__")
        bases = tuple(dotted(item) for item in (said.items if said and said.kind == "tuple" else (said,)))
        sure = 60 if dynamic else 100
        return Shape(self.id, "dynamic model", tuple(fields), notes, sure, tuple(filter(None, bases)))
