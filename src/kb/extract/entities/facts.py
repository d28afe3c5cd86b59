"""What one blob says about entities beyond its `module` facts: the names that others find them by."""

from __future__ import annotations

import msgspec

from kb.extract.api import FactOutput, ParseView
from kb.extract.expressions import last, positional, text_of
from kb.structure.facts import Definition

SOURCE = "entities"
_NEVER = frozenset(
    ["object", "TestCase", "SimpleTestCase", "TransactionTestCase", "Exception", "Protocol", "ABC"]
)


class EntityFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Classes that may be entities and tables, by the names that strings elsewhere refer to."""

    classes: tuple[str, ...] = ()
    """symbol_paths."""
    tables: tuple[tuple[str, str], ...] = ()
    """Table name, symbol_path of the class or of the module-level name."""
    user_model: str = ""
    """A literal `AUTH_USER_MODEL`."""


def read(parse: ParseView) -> FactOutput | None:
    """Names of candidate classes and tables; None for a file without any.

    Keys: `class:<name>`, `table:<name>`, `squeezed:<name>` (lower case without underscores, for tables
    whose name the framework makes from the class's), `user-model`.
    """
    classes: list[str] = []
    keys: set[str] = set()
    for definition in parse.module.definitions:
        if definition.kind == "class" and _may_be_referred_to(definition):
            classes.append(definition.symbol_path)
            keys.add(f"class:{definition.name}")
            keys.add(f"squeezed:{squeeze(definition.name)}")
    tables: list[tuple[str, str]] = []
    user_model = ""
    for entry in parse.module.assignments:
        name = text_of(entry.value)
        if entry.name == "__tablename__" and name:
            tables.append((name, entry.scope))
        elif entry.name == "AUTH_USER_MODEL" and name and not entry.scope:
            user_model = name
            keys.add("user-model")
        elif entry.value is not None and entry.value.kind == "call" and last(entry.value.value) == "Table":
            given = positional(entry.value)
            written = text_of(given[0]) if given else None
            if written:
                owner = entry.scope if entry.name == "__table__" else entry.name
                tables.append((written, owner))
    keys.update(f"table:{name}" for name, _ in tables)
    if not keys:
        return None
    return FactOutput(
        EntityFacts(tuple(dict.fromkeys(classes)), tuple(tables), user_model), tuple(sorted(keys))
    )


def squeeze(name: str) -> str:
    """Lower case without underscores: `OrderItem` and `order_item` alike."""
    return name.replace("_", "").lower()


def _may_be_referred_to(definition: Definition) -> bool:
    bases = [base for base in definition.bases if base.kind != "kwarg"]
    if "<locals>" in definition.symbol_path or not (bases or definition.decorators):
        return False
    return not all(base.kind == "name" and last(base.value) in _NEVER for base in bases) or bool(
        definition.decorators
    )
