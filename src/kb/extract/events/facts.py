"""What one blob says about events: mentions, each a decorator or a call, with the keys they are found by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Protocol

import msgspec
import tree_sitter

from kb.extract import calls
from kb.extract.api import FactOutput, ParseView
from kb.extract.expressions import dotted, last
from kb.structure.facts import Definition, Expr, SpanRef

SOURCE = "events"
_PIPELINE = re.compile(rb"(\w+)\s*=\s*(?:await\s+)?[\w.]+\.pipeline\(|\.pipeline\([^()]*\)\s+as\s+(\w+)")


class Mention(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One place that declares, handles, emits, reads, writes or deletes something."""

    family: str
    role: str
    """`handler` | `emitter` | `declaration` | `read` | `write` | `delete`."""
    verb: str
    """Last name of the decorator or callee."""
    span: SpanRef
    """The call, or the header of the decorated function."""
    scope: str = ""
    """symbol_path of the definition that holds the call; of the decorated function for a decorator."""
    decorates: bool = False
    subject: str = ""
    """Dotted name of what is declared, handled or emitted, as written; "" if it goes by `key` alone."""
    key: str = ""
    """A literal name or pattern (`orders.created`, `user:*`), "" where there is none."""
    dynamic: bool = False
    """The name is made at run time."""
    expr: Expr | None = None
    """The call or decorator."""
    handler: str = ""
    """Dotted name of the function that a call registers."""
    bound: str = ""
    """Symbol path of what a call's result is given to, where its family says so."""
    options: bool = False
    """`expr` holds options alone: the function is handed to what it gives (`lru_cache(8)(f)`)."""


class EventFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The mentions of one blob in source order."""

    mentions: tuple[Mention, ...] = ()


class Seen(msgspec.Struct):
    """A decorator or call as a family first sees it."""

    blob: Blob
    expr: Expr
    verb: str
    owner: str
    """Dotted name in front of the verb (`order_paid` of `order_paid.send`), "" for a bare name."""
    scope: str
    node: tree_sitter.Node | None = None
    definition: Definition | None = None

    def span(self) -> SpanRef:
        """The call's span, or the decorated function's header."""
        if self.definition is not None:
            return self.blob.parse.module_span(self.definition.header)
        assert self.node is not None
        return self.blob.parse.cite(self.node)

    def mention(self, family: str, role: str, **more: object) -> Mention:
        """A mention at this place."""
        return Mention(
            family,
            role,
            self.verb,
            self.span(),
            self.scope,
            self.definition is not None,
            expr=self.expr,
            **more,  # type: ignore[arg-type]
        )


class Blob:
    """What every family may ask about the blob as a whole."""

    def __init__(self, parse: ParseView) -> None:
        self.parse = parse
        self.imported = {
            (entry.alias or entry.name or entry.module.partition(".")[0]): entry
            for entry in parse.module.imports
            if entry.name != "*"
        }
        self.assigned = {
            entry.name: entry for entry in parse.module.assignments if entry.name and not entry.scope
        }
        self.members = {
            (entry.scope, entry.name): entry
            for entry in parse.module.assignments
            if entry.name and entry.scope
        }
        """Class-level assignments by class and name."""
        self.defined = {entry.name for entry in parse.module.definitions if entry.parent < 0}

    @cached_property
    def pipes(self) -> frozenset[str]:
        """What the blob calls a pipeline of a client: `with redis.pipeline() as p`, `p = redis.pipeline()`."""
        # The search costs as much as the parse of a file: hardly any has the word.
        found = _PIPELINE.findall(self.parse.source) if b".pipeline(" in self.parse.source else ()
        return frozenset((kept or named).decode() for kept, named in found)

    def is_bound(self, name: str) -> bool:
        """Whether the first part of a dotted name is imported, assigned or defined in the module."""
        head = name.partition(".")[0]
        return head in self.imported or head in self.assigned or head in self.defined

    def original(self, name: str) -> str:
        """The last part of a dotted name as it is called where it comes from (`import a as b`: `a`)."""
        if "." not in name:
            entry = self.imported.get(name)
            if entry is not None and entry.name:
                return entry.name
        return last(name)


class FactReader(Protocol):
    """The share of a family in `facts`."""

    id: str
    calls: frozenset[str]
    decorators: frozenset[str]

    @property
    def own_decorators(self) -> re.Pattern[str] | None:
        """Names of decorators that a project may write itself around the family's; linking tells which."""
        ...

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Whether a call of `owner.verb` is worth reading, told from the callee's text alone."""
        ...

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """The mentions that a call or decorator with one of the family's verbs makes."""
        ...

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """Mentions that neither a call nor a decorator makes (an assignment, mostly)."""
        ...

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """Keys that the mention is found by from another file."""
        ...


class VerbTable:
    """Which families look at which verb."""

    def __init__(self, families: tuple[FactReader, ...]) -> None:
        self.families = {family.id: family for family in families}
        self.calls: dict[str, list[FactReader]] = {}
        self.decorators: dict[str, list[FactReader]] = {}
        for family in families:
            for verb in family.calls:
                self.calls.setdefault(verb, []).append(family)
            for verb in family.decorators:
                self.decorators.setdefault(verb, []).append(family)
        self.callees = frozenset(verb.encode() for verb in self.calls)

    def decorating(self, verb: str) -> Iterator[FactReader]:
        """Families that look at a decorator: by its name, or because a project may have made it itself."""
        named = self.decorators.get(verb, ())
        yield from named
        for family in self.families.values():
            pattern = family.own_decorators
            if family not in named and pattern is not None and pattern.search(verb):
                yield family


def read(parse: ParseView, verbs: VerbTable) -> FactOutput | None:
    """Every mention of the blob; None where there is none."""
    blob = Blob(parse)
    found: list[Mention] = []
    for definition in parse.module.definitions:
        for decorator in definition.decorators:
            name = dotted(decorator.expr)
            for family in verbs.decorating(last(name)) if name else ():
                owner = name.rpartition(".")[0]
                seen = Seen(blob, decorator.expr, last(name), owner, definition.symbol_path, None, definition)
                found.extend(family.mentions(seen))
    for node in calls.named(parse, verbs.callees):
        if node.parent is None or node.parent.type != "decorator":  # decorators were read above
            found.extend(_read_call(blob, node, verbs))
    for family in verbs.families.values():
        found.extend(family.module_mentions(blob))
    if not found:
        return None
    keys = {key for mention in found for key in verbs.families[mention.family].keys(mention, blob)}
    return FactOutput(EventFacts(tuple(found)), tuple(sorted(keys)))


def _read_call(blob: Blob, node: tree_sitter.Node, verbs: VerbTable) -> Iterable[Mention]:
    """The mentions of one call; most calls are told apart by their callee's text and never read."""
    parse = blob.parse
    arguments = node.child_by_field_name("arguments")
    end = node.end_byte if arguments is None else arguments.start_byte
    owner, _, verb = parse.source[node.start_byte : end].decode("utf-8", "replace").strip().rpartition(".")
    families = [family for family in verbs.calls.get(verb, ()) if family.worth(owner, verb, blob)]
    if not families:
        return
    expr = parse.expr(node)
    named = expr.value.rpartition(".")[0]
    scope = parse.scope_of(node)
    for family in families:
        yield from family.mentions(Seen(blob, expr, verb, named, scope, node))
