"""What the one walk over a syntax tree finds besides fingerprints: places, definitions, statements.

These records hold syntax nodes and live only while a blob is read; facts are made from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import tree_sitter

from kb.model.spans import SpanKey

UNLOCATED = SpanKey(b"", 0)


@dataclass(slots=True)
class Place:
    """One place of a span that every Python blob has: what it is, and where it stands."""

    kind: str
    symbol_path: str
    fingerprint: bytes
    start_byte: int
    end_byte: int
    start_line: int
    """1-based."""
    end_line: int
    """1-based, inclusive."""
    key: SpanKey = UNLOCATED
    """Set once all places are known."""


@dataclass(slots=True)
class Scope:
    """Where the walk is: which definition, and under which condition."""

    path: str = ""
    """symbol_path of the innermost definition."""
    prefix: str = ""
    """What a name bound here is preceded by: `Order.`, `outer.<locals>.`."""
    level: str = "module"
    """`module`, `class` or `function`."""
    definition: int = -1
    condition: str = ""
    self_name: bytes = b""
    """In a method: the name of its first parameter."""
    owner: int = -1
    """In a method: the index of its class."""


@dataclass(slots=True)
class DefinitionRecord:
    """A class, function, method or lambda-assigned name, as the tree has it."""

    kind: str
    name: str
    symbol_path: str
    node: tree_sitter.Node
    """The `class_definition`, `function_definition` or `lambda`."""
    parent: int
    owner: int
    """Index of the class whose body binds the name; -1 elsewhere."""
    condition: str
    ordinal: int
    is_async: bool = False
    is_generator: bool = False
    decorators: list[tree_sitter.Node] = field(default_factory=list)
    docstring: tree_sitter.Node | None = None
    self_attributes: list[str] = field(default_factory=list)
    place: Place | None = None
    header: Place | None = None


@dataclass(slots=True)
class ImportRecord:
    """An import statement."""

    node: tree_sitter.Node
    place: Place
    scope: str
    owner: int
    condition: str
    ordinal: int


@dataclass(slots=True)
class AssignmentRecord:
    """A module- or class-level assignment or type alias."""

    node: tree_sitter.Node
    """The `assignment`, `augmented_assignment` or `type_alias_statement`."""
    place: Place
    scope: str
    owner: int
    condition: str
    ordinal: int


@dataclass(slots=True)
class Outline:
    """Everything the walk found, each list in source order."""

    places: list[Place] = field(default_factory=list)
    definitions: list[DefinitionRecord] = field(default_factory=list)
    imports: list[ImportRecord] = field(default_factory=list)
    assignments: list[AssignmentRecord] = field(default_factory=list)
    calls: list[tree_sitter.Node] = field(default_factory=list)
    too_deep: list[tuple[int, int]] = field(default_factory=list)
    """Lines (1-based, inclusive) whose syntax was nested too deep to read."""
    module: Place | None = None
    docstring: tree_sitter.Node | None = None
