"""The protocol of a framework module: one plug-in reads the entities of one framework.

A module names the bases, decorators and constructors that mark its classes by their full dotted
names, and turns a class into a `Shape`. Everything about files, look-ups, grounding and relations is
the extractor's; a framework module only reads expressions. To add a framework, write a module with
one object of this protocol and list it in `registry.FRAMEWORKS`.
"""

from __future__ import annotations

from typing import Protocol

from kb.extract.entities.records import Field, Shape
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment


class Framework(Protocol):
    """Reads the entities of one framework."""

    id: str
    bases: frozenset[str]
    """Full dotted names of base classes (a factory's with `()`)."""
    decorators: frozenset[str]
    constructors: frozenset[str]
    """Callables whose result, assigned to a module-level name, is an entity (`namedtuple`)."""

    def claims(self, source: ClassSource) -> bool:
        """Whether the class's own fields show the framework, where no base or decorator does: a mixin,
        or a class whose base belongs to a distribution that is not in the repository."""
        ...

    def fields(self, source: ClassSource) -> list[Field]:
        """The fields that the class itself declares."""
        ...

    def inherits(self, base: ClassSource) -> bool:
        """Whether the fields of this base class count as the entity's."""
        ...

    def shape(self, source: ClassSource) -> Shape:
        """The class as an entity: its own fields and what its options say."""
        ...

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """The entity that a constructor's call makes, None if the call cannot be read as one."""
        ...
