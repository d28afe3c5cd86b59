"""Type annotations as web frameworks read them: aliases opened, metadata apart, models found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found, Place
from kb.extract.expressions import (
    argument,
    dotted,
    is_none,
    keywords,
    last,
    names_in_type,
    render,
    text_of,
    typed,
)
from kb.structure.facts import Assignment, Expr

_DEEP = 12
_FIELD_CALLS = frozenset("Field field Query Path Header Cookie Body Form File".split())
_TYPE_FORMS = frozenset({"subscript", "binop", "name", "str"})
_COLLECTIONS = frozenset(
    "list List set Set frozenset FrozenSet tuple Tuple Sequence Iterable Collection dict Dict Mapping "
    "MutableMapping defaultdict DefaultDict deque Deque OrderedDict TypedDict".split()
)
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})
_SCALAR_BASES = _ENUMS | frozenset(
    {"str", "int", "float", "bytes", "builtins.str", "builtins.int", "builtins.float", "datetime.datetime"}
)
MODELS = frozenset(
    {
        "pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic.v1.BaseModel", "pydantic.RootModel",
        "pydantic_settings.BaseSettings", "sqlmodel.SQLModel", "sqlmodel.main.SQLModel",
        "pydantic.generics.GenericModel", "fastapi_users.schemas.BaseUser", "fastapi_users.schemas.BaseUserCreate",
        "fastapi_users.schemas.BaseUserUpdate",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Annotation:
    """An annotation with its aliases opened and `Annotated` taken apart."""

    type: Expr | None
    place: Place
    metadata: tuple[tuple[Expr, Place], ...] = ()


def type_text(linker: Linker, annotation: Annotation) -> str:
    """The type as one line, each class by its own simple name whatever the file imports it as."""
    return render(_simplified(linker, annotation.place, annotation.type))


def _simplified(linker: Linker, place: Place, expr: Expr | None, depth: int = 0) -> Expr | None:
    if expr is None:
        return None
    if expr.kind == "name":
        found = linker.find(place, expr.value)
        if found is not None and found.assignment is not None and depth < _DEEP:
            opened = open_annotation(linker, place, expr)
            if opened.type is not None and opened.type != expr:
                return _simplified(linker, opened.place, opened.type, depth + 1)
        whole = found.symbol_path if found is not None and found.kind == "class" else last(expr.value)
        return Expr("name", whole)
    if expr.kind == "subscript" and last(dotted(expr)) == "Literal":
        return expr
    if expr.kind in ("subscript", "binop", "list", "tuple"):
        return Expr(
            expr.kind,
            expr.value,
            tuple(_simplified(linker, place, item, depth) or item for item in expr.items),
        )
    return expr


def open_annotation(linker: Linker, place: Place, expr: Expr | None, depth: int = 0) -> Annotation:
    """The annotation behind names and strings: `SessionDep` is what it was assigned."""
    opened = typed(expr)
    if opened is None or depth > _DEEP:
        return Annotation(opened, place)
    if opened.kind == "name":
        found = linker.find(place, opened.value)
        value = found.assignment.value if found is not None and found.assignment is not None else None
        if found is None or value is None:
            return Annotation(opened, place)
        if value.kind in _TYPE_FORMS:
            inner = open_annotation(linker, found.place, value, depth + 1)
            return inner if inner.type is not None else Annotation(opened, place)
        if value.kind == "call" and last(value.value) == "NewType":
            return open_annotation(linker, found.place, argument(value, "tp", 1), depth + 1)
        if value.kind == "call" and last(value.value) == "TypeAliasType":
            return open_annotation(linker, found.place, argument(value, "value", 1), depth + 1)
        return Annotation(opened, place)
    if opened.kind == "subscript" and last(dotted(opened)) == "Annotated" and len(opened.items) > 1:
        inner = open_annotation(linker, place, opened.items[1], depth + 1)
        metadata = tuple((item, place) for item in opened.items[2:])
        return Annotation(inner.type, inner.place, (*inner.metadata, *metadata))
    return Annotation(opened, place)


def is_optional(expr: Expr | None) -> bool:
    """Whether `None` is among the alternatives."""
    if expr is None:
        return False
    if expr.kind == "subscript":
        head = last(dotted(expr))
        return head == "Optional" or (head == "Union" and any(map(is_none, expr.items[1:])))
    if expr.kind == "binop" and expr.value == "|":
        return any(is_none(item) or is_optional(item) for item in expr.items)
    return is_none(expr)


def alternatives(expr: Expr) -> Iterator[Expr]:
    """Members of a union, `None` left out; the type itself where it is no union."""
    if expr.kind == "binop" and expr.value == "|":
        for item in expr.items:
            yield from alternatives(item)
    elif expr.kind == "subscript" and last(dotted(expr)) in ("Optional", "Union"):
        for item in expr.items[1:]:
            yield from alternatives(item)
    elif not is_none(expr):
        yield expr


def is_scalar(linker: Linker, place: Place, expr: Expr | None) -> bool:
    """Whether a parameter of this type is read from the query string (as FastAPI decides it)."""
    if expr is None:
        return True
    annotation = open_annotation(linker, place, expr)
    if annotation.type is None:
        return True
    members = list(alternatives(annotation.type))
    if len(members) > 1 or (members and members[0] is not annotation.type):
        return all(is_scalar(linker, annotation.place, member) for member in members)
    expr, place = annotation.type, annotation.place
    name = dotted(expr)
    if expr.kind == "subscript":
        head = last(name)
        return head in ("Literal", "Type", "type") or (
            head not in _COLLECTIONS and not _is_model(linker, place, name)
        )
    if expr.kind != "name":
        return True
    return last(name) not in _COLLECTIONS and not _is_model(linker, place, name)


def _is_model(linker: Linker, place: Place, name: str) -> bool:
    found = linker.find(place, name)
    if found is None or found.kind != "class":
        return found is not None and not found.internal and found.qualified in MODELS
    if linker.derives(found, _SCALAR_BASES):
        return False
    return not _derives_builtin(linker, found)


def _derives_builtin(linker: Linker, found: Found) -> bool:
    """Whether the class is a `str`, `int`... by a base written so (a builtin is no look-up)."""
    bases = found.definition.bases if found.definition is not None else ()
    return any(base.kind == "name" and base.value in _SCALAR_BASES for base in bases)


def is_model(linker: Linker, found: Found) -> bool:
    """Whether an internal class is a pydantic model."""
    return found.kind == "class" and linker.derives(found, MODELS) is not None


def model_of(linker: Linker, annotation: Annotation) -> Found | None:
    """The one internal class that a type (or its optional form) is; None where it is anything else."""
    if annotation.type is None:
        return None
    members = list(alternatives(annotation.type))
    if len(members) != 1 or members[0].kind not in ("name", "subscript"):
        return None
    inner = open_annotation(linker, annotation.place, members[0])
    if inner.type is None or inner.type.kind not in ("name", "subscript"):
        return None
    found = linker.find(inner.place, dotted(inner.type))
    return found if found is not None and found.kind == "class" else None


def classes_in(linker: Linker, place: Place, expr: Expr | None, depth: int = 0) -> list[Found]:
    """Internal classes that a type mentions, through aliases, each once in order."""
    found: dict[tuple[str, str], Found] = {}
    opened = typed(expr)
    for name, _ in names_in_type(opened) if opened is not None and depth < _DEEP else ():
        hit = linker.find(place, name)
        if hit is None or not hit.internal:
            continue
        if hit.kind == "class":
            found.setdefault((hit.path, hit.symbol_path), hit)
        elif hit.assignment is not None and hit.assignment.value is not None:
            value = hit.assignment.value
            inner = value.items[2] if value.kind == "call" and len(value.items) > 2 else value
            if inner.kind in _TYPE_FORMS:
                for deep in classes_in(linker, hit.place, inner, depth + 1):
                    found.setdefault((deep.path, deep.symbol_path), deep)
    return list(found.values())


@dataclass(frozen=True)
class ModelField:
    """A field of a pydantic model or dataclass."""

    name: str
    alias: str
    annotation: Annotation
    required: bool
    default: Expr | None
    marker: Expr | None = None
    """The call that stands in the default's place (`Field(...)`, `Query(...)`)."""


def fields_of(linker: Linker, found: Found, depth: int = 0) -> list[ModelField]:
    """Fields of a class, those of its internal bases first, as the model's own constructor takes them."""
    fields: dict[str, ModelField] = {}
    for base in linker.bases(found) if depth < _DEEP else ():
        if base.kind == "class":
            fields.update((inner.name, inner) for inner in fields_of(linker, base, depth + 1))
    for name in found.definition.members if found.definition is not None else ():
        member = linker.at(found.path, f"{found.symbol_path}.{name}")
        if member is None or member.assignment is None or name.startswith("_") or name == "model_config":
            continue
        field = _field(linker, member.assignment, Place(found.path, found.symbol_path))
        if field is not None:
            fields[name] = field
    return list(fields.values())


def _field(linker: Linker, assignment: Assignment, place: Place) -> ModelField | None:
    if assignment.annotation is None:
        return None
    annotation = open_annotation(linker, place, assignment.annotation)
    if annotation.type is not None and last(dotted(annotation.type)) == "ClassVar":
        return None
    alias, default, called = assignment.name, assignment.value, None
    for marker in [default, *(item for item, _ in annotation.metadata)]:
        if marker is not None and marker.kind == "call" and last(marker.value) in _FIELD_CALLS:
            given = keywords(marker)
            alias = text_of(given.get("validation_alias")) or text_of(given.get("alias")) or alias
            if marker is default:
                default, called = argument(marker, "default", 0) or given.get("default_factory"), marker
    required = default is None or (default.kind == "const" and default.value == "...")
    return ModelField(assignment.name, alias, annotation, required, None if required else default, called)
