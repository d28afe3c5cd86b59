"""SQLAlchemy: declarative classes old and new, relationships, mixins, and tables made with `Table`."""

from __future__ import annotations

from dataclasses import replace

from kb.extract.entities.annotations import Typed
from kb.extract.entities.columns import (
    MAPPED,
    as_key,
    column,
    is_mapped,
    primary_keys,
    relationship,
    table_columns,
    with_defaults,
)
from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import (
    brief,
    dotted,
    is_true,
    last,
    positional,
    render,
    text_of,
)
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Definition

_FACTORIES = ("sqlalchemy.orm.declarative_base", "sqlalchemy.ext.declarative.declarative_base")
_COLUMNS = frozenset({"Column", "mapped_column", "deferred"})
_RELATIONS = frozenset({"relationship", "relation", "dynamic_loader"})
_OTHERS = frozenset(
    {
        "column_property",
        "synonym",
        "composite",
        "association_proxy",
        "query_expression",
        "generic_relationship",
    }
)
_METHODS = frozenset({"declared_attr", "hybrid_property", "declared_attr.directive"})
_PACKAGES = ("sqlalchemy", "sqlmodel", "flask_sqlalchemy", "geoalchemy2")


class SqlAlchemy:
    """Columns and relationships by their constructors or by `Mapped[...]`."""

    id = "sqlalchemy"
    bases = frozenset(
        [
            "sqlalchemy.orm.DeclarativeBase",
            "sqlalchemy.orm.DeclarativeBaseNoMeta",
            "sqlalchemy.orm.decl_api.DeclarativeBase",
            "flask_sqlalchemy.SQLAlchemy().Model",
            "flask_sqlalchemy.model.Model",
            "flask_appbuilder.Model",
            "flask_sqlalchemy_lite.SQLAlchemy().Model",
            "sqlalchemy.orm.registry().generate_base()",
            "fastapi_users.db.SQLAlchemyBaseUserTable",
            "fastapi_users_db_sqlalchemy.SQLAlchemyBaseUserTable",
            "fastapi_users.db.SQLAlchemyBaseUserTableUUID",
            "fastapi_users_db_sqlalchemy.SQLAlchemyBaseUserTableUUID",
            "advanced_alchemy.base.UUIDBase",
            "advanced_alchemy.base.UUIDAuditBase",
            "advanced_alchemy.base.BigIntBase",
            "advanced_alchemy.base.BigIntAuditBase",
            "advanced_alchemy.base.DefaultBase",
        ]
    ) | {f"{factory}()" for factory in _FACTORIES}
    decorators = frozenset(
        {
            "sqlalchemy.orm.mapped_as_dataclass",
            "sqlalchemy.orm.registry().mapped",
            "sqlalchemy.orm.registry().mapped_as_dataclass",
            "sqlalchemy.orm.as_declarative",
        }
    )
    constructors = frozenset(
        [
            "sqlalchemy.Table",
            "sqlalchemy.schema.Table",
            "sqlalchemy.sql.schema.Table",
            "flask_sqlalchemy.SQLAlchemy().Table",
        ]
    )

    def claims(self, source: ClassSource) -> bool:
        """A column or relationship that is SQLAlchemy's own makes a mixin."""
        for entry in source.entries:
            value, head = entry.value, dotted(entry.annotation)
            if last(head) in MAPPED and source.qualified(entry.annotation).startswith(_PACKAGES):
                return True
            call = value if value is not None and value.kind == "call" else None
            if call is None or last(call.value) not in _COLUMNS | _RELATIONS:
                continue
            if source.qualified(call).startswith(_PACKAGES):
                return True
        return False

    def inherits(self, base: ClassSource) -> bool:
        """Columns of mixins, abstract bases and parents count."""
        return True

    def fields(self, source: ClassSource) -> list[Field]:
        """Columns, relationships and proxies in source order; then what methods declare."""
        found: dict[str, Field] = {}
        for entry in source.entries:
            if entry.name == "__table__" and entry.value is not None and entry.value.kind == "call":
                found.update((field.name, field) for field in table_columns(entry.value, entry.span))
            elif not entry.name.startswith("__"):
                field = self._field(source, entry) or self._made(source, entry)
                if field is not None:
                    found[entry.name] = field
        for method in source.methods():
            declared = any(dotted(d.expr).endswith(tuple(_METHODS)) for d in method.decorators)
            if declared and not method.name.startswith("__"):
                found.setdefault(method.name, self._declared(method))
        keyed = primary_keys(e.value for e in source.entries if e.name == "__table_args__")
        return [as_key(field) if field.name in keyed else field for field in found.values()]

    def _made(self, source: ClassSource, entry: Assignment) -> Field | None:
        """A column that a function of the repository makes (`id = primary_key("users")`): named, not read."""
        call = entry.value
        if call is None or call.kind != "call" or not call.value or entry.name.startswith("_"):
            return None
        found = source.resolve(call.value)
        if found.target != "internal" or found.kind != "function":
            return None
        return Field(entry.name, entry.span, "", constraints={"made_by": brief(call)}, resolution="dynamic")

    def _declared(self, method: Definition) -> Field:
        kind = last(dotted(method.decorators[0].expr))
        read = Typed(method.returns)
        inner = read.expr.items[1] if is_mapped(read.expr) and read.expr is not None else read.expr
        return Field(
            method.name,
            method.header,
            render(inner),
            constraints={"declared_by": "declared_attr" if kind == "directive" else kind},
            resolution="dynamic",
        )

    def _field(self, source: ClassSource, entry: Assignment) -> Field | None:
        read = Typed(entry.annotation)
        mapped = is_mapped(read.expr)
        call = entry.value if entry.value is not None and entry.value.kind == "call" else None
        inner = read.expr.items[1] if mapped and read.expr is not None else None
        behind = Typed(inner, source)
        if call is None or last(call.value) in _COLUMNS:
            # A column may stand in the metadata: of Mapped[Annotated[...]], of the alias of such a type.
            for item in (*read.metadata, *behind.metadata):
                if item.kind == "call" and last(item.value) in _COLUMNS:
                    call = item if call is None else with_defaults(call, item)
            inner = behind.opened if behind.metadata else inner
        callee = last(call.value) if call is not None else ""
        if call is not None and callee in _RELATIONS:
            return relationship(entry, call, inner, dynamic=mapped and last(dotted(read.expr)) != "Mapped")
        if call is not None and callee in _COLUMNS:
            nested = [
                item for item in positional(call) if item.kind == "call" and last(item.value) == "Column"
            ]
            found = column(
                entry.name, entry.span, nested[0] if callee == "deferred" and nested else call, inner
            )
            return replace(found, aliases=tuple(behind.aliases))
        if call is not None and callee in _OTHERS:
            return Field(entry.name, entry.span, render(inner) or callee, constraints={callee: brief(call)})
        if mapped:
            found = column(entry.name, entry.span, None, inner)
            return replace(found, nullable=behind.nullable, aliases=tuple(behind.aliases))
        return None

    def shape(self, source: ClassSource) -> Shape:
        """A mapped class, mixin or declarative base, with its table."""
        notes: dict[str, object] = {}
        form = "model"
        for entry in source.entries:
            if entry.name == "__tablename__":
                notes["table"] = text_of(entry.value) or f"dynamic: {brief(entry.value)}"
            elif entry.name == "__abstract__" and is_true(entry.value):
                notes["abstract"] = True
            elif entry.name == "__table__" and entry.value is not None:
                name = positional(entry.value)[:1] if entry.value.kind == "call" else ()
                notes["table"] = (text_of(name[0]) if name else None) or brief(entry.value)
            elif entry.name in ("__table_args__", "__mapper_args__") and entry.value is not None:
                items = entry.value.items if entry.value.kind == "tuple" else (entry.value,)
                notes[entry.name.strip("_")] = [brief(item) for item in items]
        if any(b.qualified in self.bases and "DeclarativeBase" in b.qualified for b in source.bases()):
            form = "declarative base"
        elif "table" not in notes and not source.definition.decorators and not self._has_base(source):
            form = "mixin"
        return Shape(self.id, form, tuple(self.fields(source)), notes)

    def _has_base(self, source: ClassSource) -> bool:
        """Whether a base is a declarative one, or one of another distribution that may be."""
        outside = (base.qualified for base in source.bases() if base.source is None)
        return any(not name.startswith("builtins.") for name in outside) or any(
            base.qualified in self.bases for base in source.ancestry()
        )

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`Table("name", metadata, Column(...), ...)`; of foreign keys only, an association table."""
        call = assignment.value
        if call is None or len(positional(call)) < 2:
            return None
        fields = table_columns(call, assignment.span)
        keyed = primary_keys([call])
        fields = [as_key(field) if field.name in keyed else field for field in fields]
        keys = [field for field in fields if field.foreign_key]
        notes: dict[str, object] = {"table": text_of(positional(call)[0]) or brief(positional(call)[0])}
        words = [
            item for item in positional(call)[2:] if item.kind == "call" and last(item.value) != "Column"
        ]
        if words:
            notes["table_args"] = [brief(item) for item in words]
        association = len(keys) >= 2 and len(keys) >= len(fields) - 1
        return Shape(self.id, "association table" if association else "table", tuple(fields), notes)
