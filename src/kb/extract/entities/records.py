"""What a framework module reads from one class or table: fields, relations to be resolved, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kb.structure.facts import SpanRef


@dataclass(frozen=True, slots=True)
class RelationHint:
    """The other end of a field as the code names it; `relations.resolve` says what it means."""

    target: str
    """Dotted name as written, a class name in a string, `app.Model`, `self`, or `table.column`."""
    by: str
    """How to look it up: `name` (in the file's scope), `class` (by class name across the snapshot),
    `django` (an app label and model, or a model of the same app), `table` (by table name)."""
    cardinality: str
    """`one` | `many` | `choice` | `unknown`."""
    back_populates: str = ""
    via: str = ""
    """The construct: `ForeignKey`, `relationship`, `annotation`..."""
    through: str = ""
    """Association class or table as written."""
    at: tuple[str, str] = ("", "")
    """Path and scope to read a name in, where that is not the declaring class: a type's alias elsewhere."""
    optional: bool = True
    """Whether a target that is no entity of the snapshot is simply no relation (annotations)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field as its class declares it."""

    name: str
    span: SpanRef | None
    """The assignment's span in the `module` table of the file that declares it."""
    type: str = ""
    required: bool | None = None
    nullable: bool | None = None
    default: str | None = None
    primary_key: bool = False
    foreign_key: str = ""
    alias: str = ""
    constraints: dict[str, str] = field(default_factory=dict)
    description: str = ""
    relations: tuple[RelationHint, ...] = ()
    aliases: tuple[tuple[str, SpanRef], ...] = ()
    """Path and statement of each alias of a type that says a part of it."""
    resolution: str = "exact"
    """`exact`, or `dynamic` where part of the declaration runs code that is not read."""

    def body(self) -> dict[str, Any]:
        """The field as the artifact's body holds it; what is not known or not so is left out."""
        entry: dict[str, Any] = {"name": self.name, "type": self.type}
        for name in ("required", "nullable", "default"):
            value = getattr(self, name)
            if value is not None:
                entry[name] = value
        if self.primary_key:
            entry["primary_key"] = True
        for name in ("foreign_key", "alias", "constraints", "description"):
            value = getattr(self, name)
            if value:
                entry[name] = value
        if self.resolution != "exact":
            entry["resolution"] = self.resolution
        return entry


@dataclass(frozen=True, slots=True)
class Shape:
    """What one class, functional form or table is, before its relations are resolved."""

    framework: str
    form: str
    """`model`, `dataclass`, `typed dict`, `enum`, `association table`... in the framework's words."""
    fields: tuple[Field, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    """Further body entries: `table`, `options`, `meta`, `abstract`..."""
    confidence: int = 100
    bases: tuple[str, ...] = ()
    """Base classes of a functional form, as written."""
