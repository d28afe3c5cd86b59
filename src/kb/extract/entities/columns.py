"""Columns and relationships of SQLAlchemy, from their constructors and their `Mapped[...]` types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from kb.extract.entities.annotations import Typed
from kb.extract.entities.records import Field, RelationHint
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
from kb.structure.facts import Assignment, Expr, SpanRef

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
MAPPED = frozenset({"Mapped", "WriteOnlyMapped", "DynamicMapped"})


def primary_keys(holders: Iterable[Expr | None]) -> set[str]:
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


def as_key(field: Field) -> Field:
    """The column as a part of the primary key."""
    return replace(field, primary_key=True, nullable=False)


def is_mapped(expr: Expr | None) -> bool:
    """Whether a type is `Mapped[...]` or one of its kin."""
    return (
        expr is not None and expr.kind == "subscript" and last(dotted(expr)) in MAPPED and len(expr.items) > 1
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


def with_defaults(call: Expr, base: Expr) -> Expr:
    """A column's call with what the one of its type's alias says where it says nothing itself."""
    own = keywords(call)
    return Expr(
        call.kind,
        call.value,
        (
            *call.items,
            *(item for item in positional(base) if item.kind != "str"),
            *(item for item in base.items[1:] if item.kind == "kwarg" and item.value not in own),
        ),
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
        _through(through) if through is not None else "",
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


def _through(expr: Expr) -> str:
    """The association table as written: a text, a name, or what a lambda hands over."""
    said, how = _target(expr)
    return said if how != "dynamic" else (text_of(expr) or brief(expr))


def _target(expr: Expr) -> tuple[str, str]:
    if expr.kind == "str":
        return expr.value, "class"
    if expr.kind == "name":
        return expr.value, "name"
    match = _LAMBDA.match(expr.value) if expr.kind == "other" else None
    return (match.group(1), "name") if match else (brief(expr), "dynamic")
