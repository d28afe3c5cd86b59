"""The other end of a relation: found across files by name, class name, app label or table name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kb.extract.api import FileView
from kb.extract.entities.facts import SOURCE, EntityFacts, squeeze
from kb.extract.entities.records import Field, RelationHint
from kb.extract.entities.registry import BY_BASE, framework_of
from kb.extract.expressions import argument, is_true, last
from kb.extract.keys import qualified
from kb.extract.reading import ClassSource, Reader
from kb.model.artifacts import Grounding

_DJANGO_APPS = frozenset({"admin", "auth", "contenttypes", "flatpages", "redirects", "sessions", "sites"})
"""Labels of the applications that Django brings."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a hint leads to."""

    name: str
    """Dotted name as far as it is known, as written otherwise."""
    how: str
    """`exact` | `approximate` | `dynamic` | `unresolved` | `external`."""
    path: str | None = None
    symbol_path: str = ""
    source: ClassSource | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A resolved relation: its body entry, the key it links to, and what the other end stands on."""

    body: dict[str, Any]
    key: str | None
    groundings: tuple[Grounding, ...]
    target: Target


class Relations:
    """Resolves the hints of one class or table."""

    def __init__(
        self,
        reader: Reader,
        source: ClassSource | None,
        framework: str,
        registry: tuple[str, str] | None = None,
    ) -> None:
        self.reader = reader
        self.source = source
        self.framework = framework
        self.path = reader.file.path
        self.registry = _registry(source) if source is not None else registry

    def resolve(self, fields: list[tuple[Field, ClassSource | None]]) -> list[Relation]:
        """Every relation of the fields, in order; each field comes with the class that declares it."""
        found: list[Relation] = []
        pending: list[tuple[Field, RelationHint, Target]] = []
        keyed: set[tuple[str | None, str]] = set()
        for field, declared_in in fields:
            for written in field.relations:
                hint = self._named_after_owner(written, declared_in)
                target = self._target(hint, declared_in)
                if target is None:
                    continue
                if hint.by == "table" or hint.via == "ForeignKey":
                    keyed.add((target.path, target.symbol_path))
                pending.append((field, hint, target))
        for field, hint, target in pending:
            cardinality = hint.cardinality
            if cardinality == "unknown" and target.path is not None:
                # SQLAlchemy's own rule: many-to-one if this side holds the key, else one-to-many.
                holds_key = (target.path, target.symbol_path) in keyed
                cardinality = "one" if holds_key else "many"
            found.append(self._relation(field, hint, target, cardinality))
        return found

    def _target(self, hint: RelationHint, declared_in: ClassSource | None) -> Target | None:
        if hint.by == "dynamic":
            return Target(hint.target, "dynamic")
        if hint.by == "table":
            return self._by_table(hint.target)
        if hint.at != ("", ""):
            return self._entity_at(hint)
        if hint.by == "class":
            return self._by_class(hint.target, declared_in)
        if hint.by == "django" and not (hint.via == "TaggableManager" and hint.through):
            return self._by_django_name(hint.target, declared_in)
        if hint.by == "user model":
            return self._user_model()
        if hint.via == "TaggableManager" and hint.through:
            return self._tags(hint)
        found = self._by_name(hint.target, declared_in)
        if not hint.optional and found.path is None and found.how == "unresolved":
            # A name that only type checkers see (`Mapped["Order"]`) is the registry's to find.
            found = self._by_class(hint.target, declared_in)
        if hint.optional and (found.source is None or framework_of(found.source) is None):
            return None
        return found

    def _entity_at(self, hint: RelationHint) -> Target | None:
        """The entity that a name means in the file of an alias, None where it means none."""
        source = self.reader.class_named(hint.at[0], hint.target, hint.at[1])
        return self._to_class(source, "exact") if source and framework_of(source) is not None else None

    def _by_name(self, name: str, declared_in: ClassSource | None) -> Target:
        path = declared_in.path if declared_in is not None else self.path
        scope = declared_in.symbol_path if declared_in is not None else ""
        resolution = self.reader.resolve(path, name, scope)
        if resolution.target == "internal" and resolution.path is not None and resolution.symbol_path:
            source = self.reader.class_at(resolution.path, resolution.symbol_path)
            return Target(
                resolution.qualified, resolution.how, resolution.path, resolution.symbol_path, source
            )
        if resolution.target in ("external", "stdlib"):
            return Target(resolution.qualified or name, "external")
        return Target(name, "unresolved")

    def _by_class(self, name: str, declared_in: ClassSource | None) -> Target:
        """A class name that a string gives: the declarative registry's rule, across the snapshot."""
        if declared_in is not None:
            near = self.reader.resolve(declared_in.path, name, declared_in.scope)
            if near.target == "internal" and near.path is not None and near.symbol_path:
                source = self.reader.class_at(near.path, near.symbol_path)
                if source is not None:
                    return Target(near.qualified, "exact", near.path, near.symbol_path, source)
        return self._choose(name, self._candidates(last(name)), name.rpartition(".")[0])

    def _owner(self, declared_in: ClassSource | None) -> ClassSource | None:
        """The model whose table a Django field is in: the concrete one nearest to an abstract base's field."""
        if declared_in is None or self.source is None or not _is_abstract(declared_in):
            return declared_in or self.source
        declared = declared_in.path, declared_in.symbol_path
        owner = self.source
        for base in self.source.ancestry():
            above = base.source
            if above is not None and not _is_abstract(above) and declared in _sources_above(above):
                owner = above
        return owner

    def _named_after_owner(self, hint: RelationHint, declared_in: ClassSource | None) -> RelationHint:
        """Django's `%(class)s` and `%(app_label)s` filled in, which an abstract base leaves to each model."""
        owner = self._owner(declared_in) if "%(" in hint.back_populates else None
        if owner is None or _is_abstract(owner):
            return hint
        label = _app_of(self._module_of(owner.path))
        name = hint.back_populates.replace("%(class)s", owner.definition.name.lower())
        return replace(hint, back_populates=name.replace("%(app_label)s", label))

    def _by_django_name(self, name: str, declared_in: ClassSource | None) -> Target:
        owner = self._owner(declared_in)
        if name == "self" and owner is not None:
            return self._to_class(owner, "exact")
        label, _, model = name.rpartition(".")
        if not label and declared_in is not None:
            source = self.reader.class_at(declared_in.path, model)
            if source is not None:
                return self._to_class(source, "exact")
            label = _app_of(self._module_of(declared_in.path))
        found = self._choose(name, self._candidates(model), label)
        if found.how == "unresolved" and label in _DJANGO_APPS:
            return Target(f"django.contrib.{label}.models.{model}", "external")
        return found

    def _tags(self, hint: RelationHint) -> Target:
        """What a tag manager manages: where the `tag` of the class it goes through points."""
        through = self._by_through(hint)
        for entry in through.source.entries if through.source is not None else ():
            given = (
                argument(entry.value, "to", 0) if entry.value is not None and entry.name == "tag" else None
            )
            if given is not None and given.kind == "name":
                return self._by_name(given.value, through.source)
            if given is not None and given.kind == "str":
                return self._by_django_name(given.value, through.source)
        return Target("taggit.models.Tag", "approximate")

    def _user_model(self) -> Target:
        named: set[str] = set()
        for path in self.reader.world.who_has(SOURCE, "user-model"):
            read = self.reader.world.facts(path, SOURCE, EntityFacts)
            if read is not None and read[0].user_model:
                named.add(read[0].user_model)
        if not named:
            return Target("django.contrib.auth.models.User", "approximate")
        if len(named) > 1:
            return Target("settings.AUTH_USER_MODEL", "dynamic")
        found = self._by_django_name(named.pop(), None)
        return Target(found.name, "approximate", found.path, found.symbol_path, found.source)

    def _by_table(self, reference: str) -> Target:
        """`orders.id` or `schema.orders.id`: the class or table whose name it is, under the same base."""
        table = last(reference.rpartition(".")[0]) or reference
        world = self.reader.world
        targets: list[Target] = []
        for path in world.who_has(SOURCE, f"table:{table}"):
            read = world.facts(path, SOURCE, EntityFacts)
            for name, symbol_path in read[0].tables if read is not None else ():
                if name == table:
                    source = self.reader.class_at(path, symbol_path)
                    targets.append(self._to(path, symbol_path, source, "exact"))
        named_by_class = self._candidates(squeeze(table), "squeezed")
        targets.extend(
            self._to_class(source, "approximate")
            for source in named_by_class
            if not any(entry.name == "__tablename__" for entry in source.entries)
        )
        if len(targets) > 1 and self.registry is not None:
            own = [t for t in targets if t.source is None or _registry(t.source) == self.registry]
            targets = own or targets
        if len(targets) > 1:
            # Still several: the one beside it, else the file's own, else the first; no more than likely.
            scope = self.source.scope if self.source is not None else ""
            near = [target for target in targets if target.path == self.path]
            beside = [
                target
                for target in near
                if target.symbol_path.rpartition(".")[0] in (scope, f"{scope}.<locals>")
            ]
            return beside[0] if len(beside) == 1 else replace((near or targets)[0], how="approximate")
        return targets[0] if targets else Target(reference, "unresolved")

    def _candidates(self, name: str, by: str = "class") -> list[ClassSource]:
        world, found = self.reader.world, []
        for path in world.who_has(SOURCE, f"{by}:{name}"):
            read = world.facts(path, SOURCE, EntityFacts)
            for symbol_path in read[0].classes if read is not None else ():
                own = last(symbol_path)
                if name == (squeeze(own) if by == "squeezed" else own):
                    source = self.reader.class_at(path, symbol_path)
                    framework = framework_of(source) if source is not None else None
                    if source is not None and framework is not None and framework[0].id == self.framework:
                        found.append(source)
        return found

    def _choose(self, name: str, candidates: list[ClassSource], label: str) -> Target:
        """The only candidate, or the only one in the named package; several are said to be so."""
        if label:
            inside = [c for c in candidates if _is_in(self._module_of(c.path), label)]
            if len(inside) == 1:
                return self._to_class(inside[0], "exact")
            candidates = inside or candidates
        candidates = self._of_own_registry(candidates)
        if not candidates:
            return Target(name, "unresolved")
        if len(candidates) == 1:
            return self._to_class(candidates[0], "approximate" if label else "exact")
        near = [c for c in candidates if _package(c.path) == _package(self.path)]
        if len(near) == 1:
            return self._to_class(near[0], "approximate")
        return Target(f"{name} (one of {len(candidates)} classes)", "dynamic")

    def _of_own_registry(self, candidates: list[ClassSource]) -> list[ClassSource]:
        """Those under the same declarative base, where several are: class names mean nothing beyond it."""
        if len(candidates) < 2:
            return candidates
        return [c for c in candidates if _registry(c) == self.registry] or candidates

    def _to_class(self, source: ClassSource, how: str) -> Target:
        return self._to(source.path, source.symbol_path, source, how)

    def _to(self, path: str, symbol_path: str, source: ClassSource | None, how: str) -> Target:
        view = self._view(path)
        name = qualified(view, symbol_path) if view is not None else symbol_path
        return Target(name, how, path, symbol_path, source)

    def _view(self, path: str) -> FileView | None:
        return self.reader.file if path == self.path else self.reader.world.file(path)

    def _module_of(self, path: str) -> str:
        view = self._view(path)
        return view.module_name if view is not None else ""

    def _relation(self, field: Field, hint: RelationHint, target: Target, cardinality: str) -> Relation:
        body: dict[str, Any] = {"name": field.name, "target": target.name, "cardinality": cardinality}
        if hint.via:
            body["via"] = hint.via
        body["resolution"] = target.how
        key: str | None = None
        groundings: list[Grounding] = []
        if target.path is not None:
            view = self._view(target.path)
            if view is not None:
                key = "entity:" + qualified(view, target.symbol_path)
                body["target"] = qualified(view, target.symbol_path)
                groundings.extend(self._stand_on(view, target))
        if hint.back_populates:
            body["back_populates"] = hint.back_populates
            if target.source is not None and hint.via == "relationship":
                other = self._other_end(target.source, hint.back_populates)
                body["other_end"] = "declared" if other is not None else "not found"
                groundings.extend([other] if other is not None else [])
        if hint.through:
            through = self._by_through(hint)
            body["through"] = through.name
            view = self._view(through.path) if through.path is not None else None
            if view is not None:
                groundings.extend(self._stand_on(view, through))
        return Relation(body, key, tuple(groundings), target)

    def _by_through(self, hint: RelationHint) -> Target:
        if hint.via == "relationship":
            found = self._by_name(hint.through, self.source)
            if found.path is None:
                found = self._by_table(f"{hint.through}.")
            return found if found.path is not None else replace(found, name=hint.through)
        found = self._by_name(hint.through, self.source)
        return found if found.path is not None else self._by_django_name(hint.through, self.source)

    def _stand_on(self, view: FileView, target: Target) -> list[Grounding]:
        if target.source is not None:
            return [view.ground_module(target.source.definition.header, "related")]
        entry = self.reader.assignment(view.path, target.symbol_path)
        return [view.ground_module(entry.span, "related")] if entry is not None else []

    def _other_end(self, source: ClassSource, name: str) -> Grounding | None:
        owners = [source, *(base.source for base in source.ancestry() if base.source is not None)]
        for owner in owners:
            for entry in owner.entries:
                if entry.name == name:
                    view = self._view(owner.path)
                    return view.ground_module(entry.span, "related") if view is not None else None
        return None


def _sources_above(source: ClassSource) -> set[tuple[str, str]]:
    return {(b.source.path, b.source.symbol_path) for b in source.ancestry() if b.source is not None}


def _is_abstract(source: ClassSource) -> bool:
    entry = source.nested("Meta").get("abstract")
    return entry is not None and is_true(entry.value)


def _registry(source: ClassSource) -> tuple[str, str]:
    """Where the declarative base of a class is made: an assignment, or the class just below the library's."""
    for base in source.ancestry():
        if base.origin != ("", ""):
            return base.origin
        owner = base.source
        if owner is not None and any(b.qualified in BY_BASE and b.source is None for b in owner.bases()):
            return owner.path, owner.symbol_path
    return source.path, source.symbol_path


def _app_of(module: str) -> str:
    """The Django app of a module: the part before `models`."""
    parts = module.split(".")
    return (
        parts[parts.index("models") - 1] if "models" in parts[1:] else (parts[-2] if len(parts) > 1 else "")
    )


def _is_in(module: str, label: str) -> bool:
    parts = module.split(".")
    return all(part in parts for part in label.split("."))


def _package(path: str) -> str:
    return path.rpartition("/")[0]
