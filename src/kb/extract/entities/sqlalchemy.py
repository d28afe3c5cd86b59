"""SQLAlchemy: declarative classes old and new, relationships, mixins, and tables made with `Table`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from kb.extract.entities.annotations import Typed
from kb.extract.entities.records import Field, RelationHint, Shape
from kb.extract.expressions import (
    argument,
    brief,
    dotted,
    is_false,
    is_true,
    keywords,
    last,
    names_in_type,
    positional,
    render,
    text_of,
    typed,
    without_none,
)
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Definition, Expr, SpanRef

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
_MAPPED = frozenset({"Mapped", "WriteOnlyMapped", "DynamicMapped"})
_METHODS = frozenset({"declared_attr", "hybrid_property", "declared_attr.directive"})
_COLUMN_WORDS = ("unique", "index", "server_default", "onupdate", "server_onupdate", "autoincrement", "init")
_RELATION_WORDS = (
    "cascade",
    "lazy",
    "order_by",
    "primaryjoin",
    "secondaryjoin",
    "foreign_keys",
    "viewonly",
    "passive_deletes",
)
_LAMBDA = re.compile(r"lambda: ([\w.]+)$")
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
            if last(head) in _MAPPED and source.qualified(entry.annotation).startswith(_PACKAGES):
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
                field = self._field(entry) or self._made(source, entry)
                if field is not None:
                    found[entry.name] = field
        for method in source.methods():
            declared = any(dotted(d.expr).endswith(tuple(_METHODS)) for d in method.decorators)
            if declared and not method.name.startswith("__"):
                found.setdefault(method.name, self._declared(method))
        keyed = _primary_keys(e.value for e in source.entries if e.name == "__table_args__")
        return [_as_key(field) if field.name in keyed else field for field in found.values()]

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
        inner = read.expr.items[1] if _is_mapped(read.expr) and read.expr is not None else read.expr
        return Field(
            method.name,
            method.header,
            render(inner),
            constraints={"declared_by": "declared_attr" if kind == "directive" else kind},
            resolution="dynamic",
        )

    def _field(self, entry: Assignment) -> Field | None:
        read = Typed(entry.annotation)
        mapped = _is_mapped(read.expr)
        call = entry.value if entry.value is not None and entry.value.kind == "call" else None
        for item in read.metadata:
            # Mapped[Annotated[...]] keeps its column in the metadata, as does Annotated[Mapped[...]].
            if call is None and item.kind == "call" and last(item.value) in _COLUMNS:
                call = item
        inner = read.expr.items[1] if mapped and read.expr is not None else None
        callee = last(call.value) if call is not None else ""
        if call is not None and callee in _RELATIONS:
            return relationship(entry, call, inner, dynamic=mapped and last(dotted(read.expr)) != "Mapped")
        if call is not None and callee in _COLUMNS:
            nested = [
                item for item in positional(call) if item.kind == "call" and last(item.value) == "Column"
            ]
            return column(
                entry.name, entry.span, nested[0] if callee == "deferred" and nested else call, inner
            )
        if call is not None and callee in _OTHERS:
            return Field(entry.name, entry.span, render(inner) or callee, constraints={callee: brief(call)})
        if mapped:
            return column(entry.name, entry.span, None, inner)
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
        keyed = _primary_keys([call])
        fields = [_as_key(field) if field.name in keyed else field for field in fields]
        keys = [field for field in fields if field.foreign_key]
        notes: dict[str, object] = {"table": text_of(positional(call)[0]) or brief(positional(call)[0])}
        words = [
            item for item in positional(call)[2:] if item.kind == "call" and last(item.value) != "Column"
        ]
        if words:
            notes["table_args"] = [brief(item) for item in words]
        association = len(keys) >= 2 and len(keys) >= len(fields) - 1
        return Shape(self.id, "association table" if association else "table", tuple(fields), notes)


def _primary_keys(holders: Iterable[Expr | None]) -> set[str]:
    """Columns that a `PrimaryKeyConstraint(...)` among the arguments names."""
    return {
        column.value
        for holder in holders
        if holder is not None
        for item in holder.items
        if item.kind == "call" and last(item.value) == "PrimaryKeyConstraint"
        for column in positional(item)
        if column.kind == "str"
    }


def _as_key(field: Field) -> Field:
    return replace(field, primary_key=True, nullable=False)


def _is_mapped(expr: Expr | None) -> bool:
    return (
        expr is not None
        and expr.kind == "subscript"
        and last(dotted(expr)) in _MAPPED
        and len(expr.items) > 1
    )


def table_columns(call: Expr, span: SpanRef) -> list[Field]:
    """The columns of a `Table(...)` call; each stands on the whole statement."""
    return [
        column(text_of(positional(item)[0]) or "?", span, item, None)
        for item in positional(call)[1:]
        if item.kind == "call" and last(item.value) == "Column" and positional(item)
    ]


def column(name: str, span: SpanRef | None, call: Expr | None, annotation: Expr | None) -> Field:
    """A column from its constructor and the type inside `Mapped[...]`, each of which may be missing."""
    options = keywords(call) if call is not None else {}
    hints: list[RelationHint] = []
    constraints: dict[str, str] = {}
    sql_type = foreign_key = ""
    for place, item in enumerate(positional(call) if call is not None else ()):
        callee = last(dotted(item))
        if item.kind == "str" and place == 0:
            constraints["column"] = item.value
            continue
        if item.kind == "call" and callee == "ForeignKey":
            foreign_key, hint = _foreign_key(item)
            hints.append(hint)
            for word in ("ondelete", "onupdate"):
                if word in keywords(item):
                    constraints[f"foreign_key_{word}"] = brief(keywords(item)[word])
        elif item.kind == "call" and callee in ("Identity", "Sequence", "Computed", "CheckConstraint"):
            constraints[callee.lower()] = brief(item)
        elif item.kind in ("name", "call") and not sql_type:
            sql_type = brief(item)
    if "type_" in options:
        sql_type = brief(options["type_"])
    if constraints.get("column") == name:
        del constraints["column"]
    primary = is_true(options.get("primary_key"))
    read = Typed(annotation)
    if "nullable" in options:
        nullable: bool | None = is_true(options["nullable"])
    elif annotation is not None:
        nullable = read.nullable
    else:
        nullable = not primary if call is not None else None
    default = options.get("default", options.get("insert_default", options.get("default_factory")))
    constraints.update((word, brief(options[word])) for word in _COLUMN_WORDS if word in options)
    if annotation is not None and sql_type:
        constraints["sql_type"] = sql_type
    return Field(
        name,
        span,
        render(without_none(typed(read.expr) or read.expr)[0]) if read.expr is not None else sql_type,
        required=nullable is False and default is None and "server_default" not in options and not primary,
        nullable=nullable,
        default=None if default is None else brief(default),
        primary_key=primary,
        foreign_key=foreign_key,
        constraints=constraints,
        description=text_of(options.get("comment")) or text_of(options.get("doc")) or "",
        relations=tuple(hints),
    )


def _foreign_key(call: Expr) -> tuple[str, RelationHint]:
    given = positional(call)[0] if positional(call) else keywords(call).get("column", Expr("other", ""))
    if given.kind == "str":
        return given.value, RelationHint(given.value, "table", "one", via="ForeignKey", optional=False)
    written = render(given)
    owner = written.rpartition(".")[0].removesuffix(".c")
    by = "name" if given.kind == "name" and owner else "dynamic"
    return written, RelationHint(owner or written, by, "one", via="ForeignKey", optional=False)


def relationship(entry: Assignment, call: Expr, annotation: Expr | None, dynamic: bool = False) -> Field:
    """A relationship with its target, cardinality and the name of its other end."""
    options = keywords(call)
    given = positional(call)
    target = given[0] if given else options.get("argument")
    hint_target, by = "", "dynamic"
    many: bool | None = None
    if annotation is not None:
        named = [(name, inside) for name, inside in names_in_type(typed(annotation)) if name]
        candidates = [(name, inside) for name, inside in named if last(name) not in _WRAPPERS]
        many = dynamic or any(inside for _, inside in candidates)
        if candidates:
            hint_target, by = candidates[-1][0], "name"
    if target is not None:
        hint_target, by = _target(target)
    if "uselist" in options:
        many = not is_false(options["uselist"])
    if text_of(options.get("lazy")) == "dynamic" or last(call.value) == "dynamic_loader":
        many = True
    keys = options.get("foreign_keys")
    if many is None and keys is not None and keys.kind in ("list", "tuple", "name"):
        # `[user_id]` is a column of this class, `[Document.order_id]` one of the other.
        names = [item.value for item in keys.items] if keys.kind != "name" else [keys.value]
        many = any("." in name for name in names)
    if many is None:
        many = (
            True
            if argument(call, "secondary", 1) is not None
            else (False if "remote_side" in options else None)
        )
    backref = options.get("backref")
    back = text_of(options.get("back_populates")) or ""
    constraints = {word: brief(options[word]) for word in _RELATION_WORDS if word in options}
    if backref is not None:
        first = positional(backref)[0] if backref.kind == "call" and positional(backref) else backref
        constraints["backref"] = text_of(first) or brief(backref)
    through = argument(call, "secondary", 1)
    hint = RelationHint(
        hint_target or brief(target),
        by,
        "unknown" if many is None else ("many" if many else "one"),
        back,
        "relationship",
        (text_of(through) or brief(through)) if through is not None else "",
        optional=False,
    )
    shown = render(typed(annotation)) if annotation is not None else hint.target
    return Field(entry.name, entry.span, shown, constraints=constraints, relations=(hint,))


_WRAPPERS = frozenset(
    [
        "List",
        "list",
        "Set",
        "set",
        "Optional",
        "Union",
        "Sequence",
        "Dict",
        "dict",
        "Collection",
        "Iterable",
        "Mapping",
        "str",
        "int",
    ]
)


def _target(expr: Expr) -> tuple[str, str]:
    if expr.kind == "str":
        return expr.value, "class"
    if expr.kind == "name":
        return expr.value, "name"
    match = _LAMBDA.match(expr.value) if expr.kind == "other" else None
    return (match.group(1), "name") if match else (brief(expr), "dynamic")
