"""What an annotation says of a field, the same for every framework that declares fields by annotation."""

from __future__ import annotations

from kb.extract.entities.records import RelationHint
from kb.extract.expressions import (
    dotted,
    last,
    names_in_type,
    render,
    typed,
    without_none,
)
from kb.extract.reading import ClassSource
from kb.structure.facts import Assignment, Expr

# Names that never mean an entity: not worth a look-up each.
_PLAIN = frozenset(
    [
        "int",
        "str",
        "float",
        "bool",
        "bytes",
        "bytearray",
        "complex",
        "object",
        "None",
        "type",
        "list",
        "dict",
        "set",
        "frozenset",
        "tuple",
        "range",
        "slice",
        "Any",
        "Optional",
        "Union",
        "List",
        "Dict",
        "Set",
        "FrozenSet",
        "Tuple",
        "Sequence",
        "MutableSequence",
        "Iterable",
        "Iterator",
        "Collection",
        "Mapping",
        "MutableMapping",
        "Callable",
        "Type",
        "Literal",
        "Annotated",
        "ClassVar",
        "Final",
        "InitVar",
        "Required",
        "NotRequired",
        "ReadOnly",
        "Generic",
        "Self",
        "Never",
        "NoReturn",
        "Awaitable",
        "Coroutine",
        "AsyncIterator",
        "AsyncIterable",
        "Generator",
        "AsyncGenerator",
        "Hashable",
        "Sized",
        "Decimal",
        "datetime",
        "date",
        "time",
        "timedelta",
        "UUID",
        "Path",
        "Pattern",
        "Mapped",
        "WriteOnlyMapped",
        "DynamicMapped",
        "deque",
        "defaultdict",
        "Text",
        "AnyStr",
        "Deque",
        "DefaultDict",
        "OrderedDict",
        "Counter",
        "Protocol",
        "AbstractSet",
        "MutableSet",
        "EmailStr",
        "AnyUrl",
        "HttpUrl",
        "SecretStr",
        "Json",
        "datetime.datetime",
        "datetime.date",
        "datetime.time",
        "datetime.timedelta",
        "uuid.UUID",
        "typing.Any",
        "decimal.Decimal",
        "pathlib.Path",
    ]
)


class Typed:
    """An annotation split into what it says: the type, whether `None` is one of its values, wrappers."""

    def __init__(self, annotation: Expr | None) -> None:
        expr = typed(annotation)
        self.wrappers: list[str] = []
        self.metadata: tuple[Expr, ...] = ()
        """Items of `Annotated[...]` after the type, the outermost's."""
        while expr is not None and expr.kind == "subscript" and len(expr.items) > 1:
            head = last(dotted(expr))
            if head not in (
                "Annotated",
                "Required",
                "NotRequired",
                "ReadOnly",
                "Final",
                "ClassVar",
                "InitVar",
            ):
                break
            if head == "Annotated":
                self.metadata = (*self.metadata, *expr.items[2:])
            else:
                self.wrappers.append(head)
            expr = expr.items[1]
        if expr is not None and expr.kind == "name" and last(expr.value) in ("ClassVar", "Final", "KW_ONLY"):
            self.wrappers.append(last(expr.value))
        self.expr = expr
        self.nullable = expr is not None and (without_none(expr)[1] or render(expr) == "None")

    @property
    def text(self) -> str:
        """The type as one line."""
        return render(self.expr)

    def has(self, *wrappers: str) -> bool:
        """Whether one of the wrappers stands around the type."""
        return any(wrapper in self.wrappers for wrapper in wrappers)


def related(
    source: ClassSource, annotation: Expr | None, via: str = "annotation"
) -> tuple[RelationHint, ...]:
    """Hints for the classes that a type mentions; which of them are entities is found out later."""
    hints: dict[str, RelationHint] = {}
    parameters = set(source.definition.type_params.replace(",", " ").split())
    for name, many in names_in_type(annotation):
        if name and name not in _PLAIN and last(name) not in _PLAIN and name not in parameters:
            hints.setdefault(name, RelationHint(name, "name", "many" if many else "one", via=via))
    return tuple(hints.values())


def annotated_entries(source: ClassSource) -> list[tuple[Assignment, Typed]]:
    """Annotated assignments that declare a field: not `ClassVar`, the last of each name, source order."""
    found: dict[str, tuple[Assignment, Typed]] = {}
    for entry in source.entries:
        if entry.annotation is None:
            continue
        read = Typed(entry.annotation)
        if not read.has("ClassVar"):
            found[entry.name] = (entry, read)
    return list(found.values())
