"""A class as framework modules read it: its assignments, nested options, bases; in this file or another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kb.extract.api import FileView, Resolution, WorldView
from kb.extract.expressions import argument, dotted, last, positional
from kb.structure.facts import Assignment, Definition, Expr, FactT, SpanRef

UNRESOLVED = Resolution("unknown", "", "unresolved")


@dataclass(frozen=True, slots=True)
class Base:
    """One base class: an internal class, or the name at which the walk ends."""

    qualified: str
    """Dotted name; a call's callee ends in `()` (`sqlalchemy.orm.declarative_base()`)."""
    source: ClassSource | None = None
    call: Expr | None = None
    """The call, for a base that one makes (`namedtuple("P", "x y")`)."""
    origin: tuple[str, str] = ("", "")
    """Path and name of the assignment that keeps what the call makes (`Base = declarative_base()`)."""


class Reader:
    """Looks things up for one file's link and remembers the answers for as long as that lasts."""

    def __init__(self, file: FileView, world: WorldView) -> None:
        self.file = file
        self.world = world
        self._resolved: dict[tuple[str, str, str], Resolution] = {}
        self._classes: dict[tuple[str, str], ClassSource | None] = {}
        self._entries: dict[str, list[Assignment]] = {}
        for assignment in file.module.assignments:
            self._entries.setdefault(assignment.scope, []).append(assignment)
        self._own = {definition.symbol_path: definition for definition in file.module.definitions}

    def resolve(self, path: str, name: str, scope: str) -> Resolution:
        """What a dotted name means in a file and scope; `UNRESOLVED` for an empty name."""
        if not name:
            return UNRESOLVED
        key = (path, name, scope)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self.world.resolve(path, name, scope)
        return found

    def view(self, path: str) -> FileView | None:
        """A file: the linked one as it is, another by look-up."""
        return self.file if path == self.file.path else self.world.file(path)

    def row(self, path: str, source: str, own: FactT) -> tuple[FactT, FileView] | None:
        """A file's facts of `source` with its view: `own` for the linked file, another's by look-up."""
        if path == self.file.path:
            return own, self.file
        return self.world.facts(path, source, type(own))

    def assignments(self, path: str, scope: str, members: tuple[str, ...]) -> list[Assignment]:
        """Assignments of a class body: read directly in the linked file, by look-up in another."""
        if path == self.file.path:
            return self._entries.get(scope, [])
        found = [self.assignment(path, f"{scope}.{member}") for member in members]
        return [entry for entry in found if entry is not None]

    def definition(self, path: str, symbol_path: str) -> Definition | None:
        """The definition bound to `symbol_path`, None if it is bound to something else or to nothing."""
        if path == self.file.path:
            return self._own.get(symbol_path)
        answer = self.world.definition(path, symbol_path)
        return answer[1] if answer is not None and isinstance(answer[1], Definition) else None

    def assignment(self, path: str, symbol_path: str) -> Assignment | None:
        """The assignment that binds `symbol_path`, None if something else does or nothing."""
        answer = self.world.definition(path, symbol_path)
        return answer[1] if answer is not None and isinstance(answer[1], Assignment) else None

    def class_at(self, path: str, symbol_path: str) -> ClassSource | None:
        """The class bound to `symbol_path` in the file at `path`, None if it is something else."""
        key = (path, symbol_path)
        if key not in self._classes:
            found = self.definition(path, symbol_path)
            known = found is not None and found.kind == "class"
            self._classes[key] = ClassSource(self, path, found) if found is not None and known else None
        return self._classes[key]

    def class_named(self, path: str, name: str, scope: str) -> ClassSource | None:
        """The internal class that a dotted name means, None if it means no class of the snapshot."""
        found = self.resolve(path, name, scope)
        if found.target != "internal" or found.path is None or not found.symbol_path:
            return None
        return self.class_at(found.path, found.symbol_path)


class Names:
    """Dotted names as they read at one place of one file: a module's level, or a class body."""

    def __init__(self, reader: Reader, path: str, symbol_path: str = "") -> None:
        self.reader = reader
        self.path = path
        self.symbol_path = symbol_path

    def resolve(self, name: str) -> Resolution:
        """What a dotted name means here."""
        return self.reader.resolve(self.path, name, self.scope_for(name, self.symbol_path))

    def scope_for(self, name: str, scope: str) -> str:  # a class body knows better
        """The scope to resolve a name in: itself, or a wider one that answers the same."""
        return scope

    def qualified(self, expr: Expr | None) -> str:
        """Full dotted name of a name or of a call's callee; the name as written if it is not known."""
        name = dotted(expr)
        return self.named(name, self.symbol_path).qualified if name else ""

    def named(self, name: str, scope: str) -> Base:
        """What a dotted name means in a scope of this file, seen through what made an instance.

        `db.Model`, where `db = SQLAlchemy(app)`, is `flask_sqlalchemy.SQLAlchemy().Model`.
        """
        scope = self.scope_for(name, scope)
        found = self.reader.resolve(self.path, name, scope)
        head, _, attribute = name.rpartition(".")
        if found.target == "internal" and found.path is not None and found.symbol_path:
            source = self.reader.class_at(found.path, found.symbol_path)
            if source is not None:
                return Base(found.qualified, source)
            if found.how == "exact" or not head:
                return self._made(found.path, found.symbol_path) or Base(found.qualified)
        if head and found.target not in ("external", "stdlib"):
            owner = self.reader.resolve(self.path, head, scope)
            if owner.target == "internal" and owner.path is not None and owner.symbol_path:
                made = self._made(owner.path, owner.symbol_path)
                if made is not None:
                    return Base(f"{made.qualified}.{attribute}", call=made.call, origin=made.origin)
        return Base(found.qualified or name)

    def alias(self, name: str) -> Alias | None:
        """The type that a name is given (`Money = Annotated[Decimal, ...]`), None where it is no such name."""
        found = self.resolve(name)
        if found.target != "internal" or found.path is None or not found.symbol_path:
            return None
        entry = self.reader.assignment(found.path, found.symbol_path)
        value = entry.value if entry is not None else None
        if value is not None and value.kind == "call" and last(value.value) == "TypeAliasType":
            value = argument(value, "value", 1)
        if entry is None or value is None or value.kind not in ("subscript", "binop", "name", "str"):
            return None
        names = Names(self.reader, found.path, found.symbol_path.rpartition(".")[0])
        return Alias(value, names, entry.span)

    def callee(self, call: Expr) -> str:
        """The last name of what a call calls, as it is named where it comes from (`Field as F`: `Field`)."""
        return last(self.qualified(call)) if call.value else ""

    def _made(self, path: str, symbol_path: str) -> Base | None:
        """What the call makes that a name is assigned; a subclass's product goes by its outside base."""
        entry = self.reader.assignment(path, symbol_path)
        if entry is None or entry.value is None or entry.value.kind != "call" or not entry.value.value:
            return None
        written = entry.value.value
        maker = self.reader.resolve(path, written, "").qualified or written
        source = self.reader.class_named(path, written, "")
        for base in source.ancestry() if source is not None else ():
            if base.source is None:
                maker = base.qualified
                break
        return Base(maker + "()", call=entry.value, origin=(path, symbol_path))


@dataclass(frozen=True, slots=True)
class Alias:
    """A type under a name of its own."""

    type: Expr
    names: Names
    """By which the type is read: those of the file that gives it its name."""
    span: SpanRef
    """The statement that does, in the `module` table of `names.path`."""


class ClassSource(Names):
    """One class definition with everything that a framework module may ask about it."""

    def __init__(self, reader: Reader, path: str, definition: Definition) -> None:
        super().__init__(reader, path, definition.symbol_path)
        self.definition = definition
        self._members = frozenset(definition.members)
        self._ancestry: list[Base] | None = None
        self._bases: list[Base] | None = None
        self._entries: list[Assignment] | None = None

    def scope_for(self, name: str, scope: str) -> str:
        """Module level for a name that the body of a top-level class does not bind: asked once a file."""
        if scope == self.symbol_path and "." not in scope and name.partition(".")[0] not in self._members:
            return ""
        return scope

    @property
    def scope(self) -> str:
        """Where the class statement itself stands: names in decorators and bases are read there."""
        return self.symbol_path.rpartition(".")[0].removesuffix(".<locals>")

    @property
    def entries(self) -> list[Assignment]:
        """Class-level assignments to names, in source order."""
        if self._entries is None:
            found = self.reader.assignments(self.path, self.symbol_path, self.definition.members)
            self._entries = [entry for entry in found if entry.name]
        return self._entries

    def decorators(self) -> Iterator[tuple[str, Expr]]:
        """Full dotted name and expression of each decorator that is a name or a call of one.

        What an instance or a call gives counts as well: `@reg.mapped`, where `reg = registry()`, and
        `@frozen`, where `frozen = partial(dataclass, frozen=True)`.
        """
        for decorator in self.definition.decorators:
            name = dotted(decorator.expr)
            if name:
                found = self.named(name, self.scope)
                if found.qualified == "functools.partial()" and found.call is not None:
                    given = positional(found.call)
                    around = Names(self.reader, found.origin[0])
                    yield (around.qualified(given[0]) if given else found.qualified), decorator.expr
                else:
                    yield found.qualified.removesuffix("()"), decorator.expr

    def keyword(self, name: str) -> Expr | None:
        """A keyword among the bases (`table=True`, `total=False`), None where it is not given."""
        for base in self.definition.bases:
            if base.kind == "kwarg" and base.value == name:
                return base.items[0]
        return None

    def nested(self, name: str) -> dict[str, Assignment]:
        """Assignments of a nested options class (`Meta`, `Config`), by name; empty without one."""
        if name not in self.definition.members:
            return {}
        inner = self.reader.class_at(self.path, f"{self.symbol_path}.{name}")
        return {entry.name: entry for entry in inner.entries} if inner is not None else {}

    def methods(self) -> Iterator[Definition]:
        """Methods of the class body that are bound to their names."""
        fields = {entry.name for entry in self.entries}
        for member in self.definition.members:
            found = self.reader.definition(self.path, f"{self.symbol_path}.{member}")
            if member not in fields and found is not None and found.kind == "method":
                yield found

    def bases(self) -> list[Base]:
        """Base classes in order; a factory's product is the factory's name with `()`."""
        if self._bases is None:
            self._bases = []  # what an instance of the class itself makes is asked for on the way
            self._bases = [self._base(expr) for expr in self.definition.bases if expr.kind != "kwarg"]
        return self._bases

    def _base(self, expr: Expr) -> Base:
        name = dotted(expr)
        if expr.kind == "call":
            return Base(
                (self.reader.resolve(self.path, name, self.scope).qualified or name) + "()", call=expr
            )
        found = self.named(name, self.scope)
        return Base(found.qualified) if found.source is self else found

    def ancestry(self) -> list[Base]:
        """Every base class, nearest first (depth first, each once; cycles end by themselves)."""
        if self._ancestry is None:
            self._ancestry = []
            self._ancestry = list(self._walk())
        return self._ancestry

    def _walk(self) -> Iterator[Base]:
        seen = {(self.path, self.symbol_path)}
        pending = list(self.bases())
        while pending:
            base = pending.pop(0)
            key = (base.source.path, base.source.symbol_path) if base.source else ("", base.qualified)
            if key in seen:
                continue
            seen.add(key)
            yield base
            if base.source is not None:
                pending[:0] = base.source.bases()
