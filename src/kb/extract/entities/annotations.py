"""What an annotation says of a field, the same for every framework that declares fields by annotation."""

from __future__ import annotations

from collections.abc import Iterator

from kb.extract.entities.records import RelationHint
from kb.extract.expressions import (
    dotted,
    last,
    names_in_type,
    render,
    typed,
    without_none,
)
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr, SpanRef

_DEEP = 8
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
    """An annotation split into what it says: the type, whether `None` is one of its values, wrappers.

    With the names of the class around it, aliases of types are looked into: what `Annotated` gives them is
    `metadata` as well, `None` among their alternatives is one of the values. `expr` stays as written.
    """

    def __init__(self, annotation: Expr | None, names: Names | None = None) -> None:
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
        self.opened = expr
        """The type behind an alias that `Annotated` makes, with its `None`; `expr` where there is none."""
        self.aliases: list[tuple[str, SpanRef]] = []
        """Path and statement of each alias that was looked into."""
        self._read_by: dict[int, Names] = {}
        if names is not None and expr is not None:
            self._open(expr, names)

    def _open(self, expr: Expr, names: Names) -> None:
        own, optional, annotated, changed = names, self.nullable, False, True
        inner: Expr | None = expr
        for _ in range(_DEEP):
            if inner is None or not changed:
                break
            bare, none = without_none(inner)
            optional, changed, inner = optional or none, none, bare
            if bare.kind == "subscript" and last(dotted(bare)) == "Annotated" and len(bare.items) > 1:
                self._read_by.update((id(item), names) for item in bare.items[2:] if names is not own)
                self.metadata = (*bare.items[2:], *self.metadata)
                inner, annotated, changed = typed(bare.items[1]), True, True
            elif bare.kind == "name" and bare.value not in _PLAIN and last(bare.value) not in _PLAIN:
                alias = names.alias(bare.value)
                if alias is not None:
                    self.aliases.append((alias.names.path, alias.span))
                    inner, names, changed = typed(alias.type), alias.names, True
        self.nullable = optional
        if annotated and inner is not None:
            self.opened = Expr("binop", "|", (inner, Expr("const", "None"))) if optional else inner

    def read_by(self, item: Expr, names: Names) -> Names:
        """The names by which an item of `metadata` is read: those of the alias's file, or `names`."""
        return self._read_by.get(id(item), names)

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
    for name, many, names in _mentioned(source, annotation):
        if name not in parameters:
            at = ("", "") if names is source else (names.path, names.symbol_path)
            hints.setdefault(name, RelationHint(name, "name", "many" if many else "one", via=via, at=at))
    return tuple(hints.values())


def _mentioned(
    names: Names, annotation: Expr | None, many: bool = False, depth: int = 0
) -> Iterator[tuple[str, bool, Names]]:
    """Names that a type mentions and that are no plain ones, through the aliases among them."""
    for name, inside in names_in_type(annotation, many):
        if not name or name in _PLAIN or last(name) in _PLAIN:
            continue
        alias = names.alias(name) if depth < _DEEP else None
        if alias is None:
            yield name, inside, names
        else:
            yield from _mentioned(alias.names, typed(alias.type), inside, depth + 1)


def annotated_entries(source: ClassSource) -> list[tuple[Assignment, Typed]]:
    """Annotated assignments that declare a field: not `ClassVar`, the last of each name, source order."""
    found: dict[str, tuple[Assignment, Typed]] = {}
    for entry in source.entries:
        if entry.annotation is None:
            continue
        read = Typed(entry.annotation, source)
        if not read.has("ClassVar"):
            found[entry.name] = (entry, read)
    return list(found.values())
