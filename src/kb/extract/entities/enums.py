"""Enumerations: members with their values, class-based and functional, Django's choices included."""

from __future__ import annotations

from kb.extract.entities.records import Field, Shape
from kb.extract.expressions import argument, brief, last, pairs
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr

_KINDS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum")
_CHOICES = ("Choices", "IntegerChoices", "TextChoices")


class Enums:
    """Every assigned name of the body is a member, as the enum machinery would make it one."""

    id = "enum"
    bases = (
        frozenset(f"enum.{kind}" for kind in _KINDS)
        | frozenset(f"django.db.models.{kind}" for kind in _CHOICES)
        | frozenset(f"django.db.models.enums.{kind}" for kind in _CHOICES)
    )
    decorators: frozenset[str] = frozenset()
    constructors = frozenset(f"enum.{kind}" for kind in _KINDS)

    def claims(self, source: ClassSource) -> bool:
        """Never: a field alone does not make one."""
        return False

    def inherits(self, base: ClassSource) -> bool:
        """An enum that has members cannot be subclassed: nothing is inherited."""
        return False

    def fields(self, source: ClassSource) -> list[Field]:
        """Members in order; an alias names the member that it repeats."""
        found: list[Field] = []
        first: dict[str, str] = {}
        ignored = _ignored(source)
        for entry in source.entries:
            given = _own_value(source, entry)
            if given is None or not _is_member(entry) or entry.name in ignored:
                continue
            value = brief(given)
            automatic = given.kind == "call" and last(given.value) == "auto"
            if given.kind == "name" and any(field.name == given.value for field in found):
                repeated = next(
                    field.constraints.get("alias_of", field.name)
                    for field in found
                    if field.name == given.value
                )
            else:
                repeated = "" if automatic else first.setdefault(value, entry.name)
            alias = {"alias_of": repeated} if repeated not in ("", entry.name) else {}
            found.append(Field(entry.name, entry.span, "", default=value, constraints=alias))
        return found

    def shape(self, source: ClassSource) -> Shape:
        """The kind of enum, and the data type that its members share."""
        kind, mixed = "Enum", []
        for base in source.ancestry():
            if base.qualified in self.bases:
                kind = last(base.qualified)
                break
            if base.source is None:
                mixed.append(last(base.qualified))
        notes: dict[str, object] = {"enum": kind}
        if mixed:
            notes["data_type"] = ", ".join(mixed)
        if any(name == "enum.unique" for name, _ in source.decorators()):
            notes["unique"] = True
        return Shape(self.id, "enum", tuple(self.fields(source)), notes)

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """`Enum("Color", "RED GREEN")`, a list of names, of pairs, or a dict; dynamic members say so."""
        call = assignment.value
        given = argument(call, "names", 1) if call is not None else None
        if call is None or given is None:
            return None
        notes: dict[str, object] = {"enum": last(call.value)}
        members = _members(given)
        if members is None:
            return Shape(self.id, "enum", (), {**notes, "resolution": "dynamic"}, 60)
        fields = tuple(Field(name, assignment.span, "", default=value) for name, value in members)
        return Shape(self.id, "enum", fields, notes)


def _own_value(source: ClassSource, entry: Assignment) -> Expr | None:
    """What the name is assigned; its part where one statement assigns several (`X, Y = "x", "y"`)."""
    value = entry.value
    together = [other.name for other in source.entries if other.span == entry.span]
    if value is None or len(together) < 2 or value.kind not in ("tuple", "list"):
        return value
    return value.items[together.index(entry.name)] if len(value.items) == len(together) else value


def _ignored(source: ClassSource) -> set[str]:
    """Names that `_ignore_` keeps from becoming members."""
    given = next((entry.value for entry in source.entries if entry.name == "_ignore_"), None)
    if given is None:
        return set()
    if given.kind == "str":
        return set(given.value.replace(",", " ").split())
    return {item.value for item in given.items if item.kind == "str"}


def _is_member(entry: Assignment) -> bool:
    name = entry.name
    if name.startswith("__") or (name.startswith("_") and name.endswith("_")) or entry.operator:
        return False
    value = entry.value
    return not (value is not None and value.kind == "call" and last(value.value) == "nonmember")


def _members(given: Expr) -> list[tuple[str, str]] | None:
    if given.kind == "str":
        return [(name, str(place)) for place, name in enumerate(given.value.replace(",", " ").split(), 1)]
    if given.kind == "dict":
        found = [(key.value, brief(value)) for key, value in pairs(given) if key.kind == "str"]
        return found if len(found) * 2 == len(given.items) else None
    if given.kind not in ("list", "tuple"):
        return None
    if all(item.kind == "str" for item in given.items):
        return [(item.value, str(place)) for place, item in enumerate(given.items, 1)]
    if all(
        i.kind in ("tuple", "list") and len(i.items) == 2 and i.items[0].kind == "str" for i in given.items
    ):
        return [(item.items[0].value, brief(item.items[1])) for item in given.items]
    return None
