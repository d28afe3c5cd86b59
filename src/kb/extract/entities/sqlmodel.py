"""SQLModel: pydantic models that are tables too when the class says `table=True`."""

from __future__ import annotations

from dataclasses import replace

from kb.extract.entities.annotations import Typed
from kb.extract.entities.columns import relationship
from kb.extract.entities.pydantic import Pydantic
from kb.extract.entities.records import Field, RelationHint, Shape
from kb.extract.expressions import is_true, keywords, text_of
from kb.extract.reading import ClassSource
from kb.structure.facts import Assignment


class SqlModel(Pydantic):
    """Pydantic's fields, with the keys that `Field` carries and `Relationship` for the other ends."""

    id = "sqlmodel"
    bases = frozenset({"sqlmodel.SQLModel", "sqlmodel.main.SQLModel"})
    constructors: frozenset[str] = frozenset()

    def _field(self, source: ClassSource, entry: Assignment, read: Typed) -> Field:
        call = entry.value
        if call is not None and call.kind == "call" and source.callee(call) == "Relationship":
            found = relationship(entry, call, read.expr)
            if "link_model" in keywords(call):
                through = keywords(call)["link_model"].value
                return replace(
                    found, relations=tuple(replace(hint, through=through) for hint in found.relations)
                )
            return found
        found = super()._field(source, entry, read)
        constraints = dict(found.constraints)
        foreign_key = constraints.pop("foreign_key", "").strip('"')
        primary = constraints.pop("primary_key", "") == "True"
        hints = found.relations
        if foreign_key:
            hints += (RelationHint(foreign_key, "table", "one", via="foreign_key", optional=False),)
        return replace(
            found, primary_key=primary, foreign_key=foreign_key, constraints=constraints, relations=hints
        )

    def shape(self, source: ClassSource) -> Shape:
        """A model, or a table and its name."""
        found = super().shape(source)
        notes = dict(found.notes)
        table = is_true(source.keyword("table"))
        for entry in source.entries:
            if entry.name == "__tablename__":
                notes["table"] = text_of(entry.value) or "dynamic"
        if table:
            notes.setdefault("table", source.definition.name.lower())
        return replace(found, form="table model" if table else found.form, notes=notes)
