"""Where an expression is read, and what reading it gives: a text, or something found.

A `Place` is a file, a scope in it, and what enclosing loops and the call around have bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kb.structure.facts import Assignment, Definition, Expr

EXACT, APPROXIMATE, DYNAMIC = "exact", "approximate", "dynamic"
UNKNOWN = "\0"
"""Inside both angles of a part that cannot be told, so that nothing in it is taken for a parameter of the path."""


@dataclass(frozen=True)
class Place:
    """One file and scope in which expressions are read."""

    path: str
    scope: str = ""
    bindings: Mapping[str, tuple[Expr, Place]] = field(default_factory=dict, compare=False, hash=False)

    def at(self, scope: str) -> Place:
        """The same file, another scope."""
        return replace(self, scope=scope)


@dataclass(frozen=True)
class Text:
    """A string as far as it can be told statically; `<name>` stands for a part that cannot."""

    value: str
    how: str = EXACT

    def __add__(self, other: Text) -> Text:
        return Text(self.value + other.value, worst(self.how, other.how))


def untold(written: str) -> Text:
    """A part of a text that only a run can tell, as it is written."""
    return Text(f"<{UNKNOWN}{written}{UNKNOWN}>", DYNAMIC)


@dataclass(frozen=True)
class Found:
    """A name resolved to something inside the snapshot or outside of it."""

    qualified: str
    internal: bool
    path: str = ""
    symbol_path: str = ""
    kind: str = ""
    definition: Definition | None = None
    assignment: Assignment | None = None
    spelled: str = ""
    """The dotted name by which it was reached, before re-exports were followed."""
    key: str = ""
    """Logical key of its own artifact."""

    @property
    def place(self) -> Place:
        """Where the found thing's own expressions are read."""
        return Place(self.path, scope_around(self.symbol_path))


def worst(*hows: str) -> str:
    """The least sure of several resolutions."""
    order = (EXACT, APPROXIMATE, DYNAMIC)
    return max(hows, key=order.index, default=EXACT)


def scope_around(symbol_path: str) -> str:
    """Scope in which a definition stands (`outer` of `outer.<locals>.inner`)."""
    return symbol_path.rpartition(".")[0].removesuffix(".<locals>")


def scopes_outward(scope: str) -> Iterator[str]:
    """The scope and every one around it, innermost first, the module's ("") last."""
    while scope:
        yield scope
        scope = scope_around(scope)
    yield ""
