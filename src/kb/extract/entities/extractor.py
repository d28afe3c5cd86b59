"""The entities extractor: one artifact per data shape, grounded on its header, fields and other ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.entities import facts as entity_facts
from kb.extract.entities.framework import Framework
from kb.extract.entities.records import Field, Shape
from kb.extract.entities.registry import BY_CONSTRUCTOR, CONSTRUCTOR_NAMES, framework_of
from kb.extract.entities.relations import Relation, Relations
from kb.extract.entities.text import entity_text
from kb.extract.expressions import argument, dotted, is_none, last
from kb.extract.keys import qualified
from kb.extract.reading import Base, ClassSource, Names, Reader
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Assignment, Expr

ID = "entities"
_LEAST = {"exact": 100, "external": 100, "approximate": 80, "dynamic": 60, "unresolved": 60}


class EntitiesExtractor:
    """Entities of the frameworks in `registry.FRAMEWORKS`, one artifact each."""

    id = ID
    version = 3
    dialects = frozenset({"python", "python-stub"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Names that other files' strings refer to; the rest is in the `module` facts."""
        return entity_facts.read(parse)

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One draft per entity that the file declares, in source order."""
        reader = Reader(file, world)
        for definition in file.module.definitions:
            if definition.kind != "class":
                continue
            source = ClassSource(reader, file.path, definition)
            found = framework_of(source)
            if found is not None:
                framework, confidence = found
                yield self._class_draft(reader, source, framework, confidence)
        for assignment in file.module.assignments:
            yield from self._functional(reader, assignment)

    def _functional(self, reader: Reader, assignment: Assignment) -> Iterator[ArtifactDraft]:
        call = assignment.value
        if call is None or call.kind != "call" or last(call.value) not in CONSTRUCTOR_NAMES:
            return
        if not assignment.name or assignment.name.startswith("__"):
            return
        names = Names(reader, reader.file.path, assignment.scope)
        framework = BY_CONSTRUCTOR.get(names.qualified(call))
        shape = framework.functional(names, assignment) if framework is not None else None
        if framework is None or shape is None:
            return
        symbol_path = ".".join(filter(None, (assignment.scope, assignment.name)))
        fields: list[tuple[Field, ClassSource | None]] = [(field, None) for field in shape.fields]
        bases = [names.named(name, names.symbol_path) for name in shape.bases]
        above = [base for base in bases for base in (base, *(base.source.ancestry() if base.source else ()))]
        inherited = list(_inherited(above, framework, {field.name for field in shape.fields}, shape))
        fields += inherited
        relations = Relations(reader, None, shape.framework, _registry_of(names, call)).resolve(fields)
        yield _draft(
            reader.file,
            symbol_path,
            shape,
            inherited=[(field, _name_of(reader, owner)) for field, owner in inherited],
            relations=relations,
            groundings=[
                reader.file.ground_module(assignment.span, "entity"),
                *_stand_on(reader, fields),
                *_stand_on(reader, fields, alias=True),
            ],
            bases=[base.qualified for base in bases],
        )

    def _class_draft(
        self, reader: Reader, source: ClassSource, framework: Framework, confidence: int
    ) -> ArtifactDraft:
        shape = framework.shape(source)
        inherited = list(
            _inherited(source.ancestry(), framework, {field.name for field in shape.fields}, shape)
        )
        fields: list[tuple[Field, ClassSource | None]] = [(field, source) for field in shape.fields]
        fields += inherited
        relations = Relations(reader, source, framework.id).resolve(fields)
        view = reader.file
        groundings = [view.ground_module(source.definition.header, "entity")]
        groundings += [view.ground_module(f.span, "field") for f in shape.fields if f.span is not None]
        groundings += _stand_on(reader, inherited)
        groundings += _stand_on(reader, fields, alias=True)
        bodies = [(field, _name_of(reader, owner)) for field, owner in inherited]
        doc = _first_paragraph(source.definition.docstring)
        return _draft(
            view,
            source.symbol_path,
            shape,
            inherited=bodies,
            relations=relations,
            groundings=groundings,
            doc=doc,
            bases=[
                n for n in (b.qualified.removeprefix("builtins.") for b in source.bases()) if n != "object"
            ],
            confidence=confidence,
        )


def _stand_on(
    reader: Reader, fields: Sequence[tuple[Field, ClassSource | None]], *, alias: bool = False
) -> Iterator[Grounding]:
    """Groundings on fields that bases declare, or on the aliases of types that say a part of the fields."""
    for field, owner in fields:
        own = [(owner.path, field.span)] if owner is not None and field.span is not None else []
        for path, span in field.aliases if alias else own:
            view = reader.view(path)
            if view is not None:
                yield view.ground_module(span, "alias" if alias else "inherited")


def _registry_of(names: Names, call: Expr) -> tuple[str, str] | None:
    """The declarative base whose metadata a table is made in (`Base.metadata`, `db.Table`)."""
    for written in (argument(call, "metadata", 1), call):
        owner, _, attribute = dotted(written).rpartition(".")
        base = names.named(owner, names.symbol_path) if owner and attribute in ("metadata", "Table") else None
        if base is not None and base.source is not None:
            return base.source.path, base.source.symbol_path
        if base is not None and base.origin != ("", ""):
            return base.origin
    return None


def _inherited(
    above: Sequence[Base], framework: Framework, known: set[str], shape: Shape
) -> Iterator[tuple[Field, ClassSource]]:
    """Fields that base classes add, nearest first, without those that the class declares again."""
    seen = known | set(shape.notes.get("removed", ()))
    for base in above:
        owner = base.source
        if owner is None or base.qualified in framework.bases or not framework.inherits(owner):
            continue
        for field in framework.fields(owner):
            if field.name not in seen:
                seen.add(field.name)
                yield field, owner
        # `name = None` in a class takes away what the classes behind it declare.
        seen.update(e.name for e in owner.entries if e.annotation is None and is_none(e.value))


def _name_of(reader: Reader, owner: ClassSource) -> str:
    view = reader.file if owner.path == reader.file.path else reader.world.file(owner.path)
    return qualified(view, owner.symbol_path) if view is not None else owner.symbol_path


def _first_paragraph(docstring: str | None) -> str:
    return " ".join((docstring or "").strip().split("\n\n")[0].split())[:400]


def _draft(
    file: FileView,
    symbol_path: str,
    shape: Shape,
    *,
    inherited: list[tuple[Field, str]],
    relations: list[Relation],
    groundings: list[Grounding],
    doc: str = "",
    bases: Sequence[str] = (),
    confidence: int = 100,
) -> ArtifactDraft:
    name = qualified(file, symbol_path)
    body: dict[str, Any] = {
        "name": name,
        "framework": shape.framework,
        "form": shape.form,
        "fields": [field.body() for field in shape.fields],
        **shape.notes,
    }
    if bases:
        body["bases"] = list(bases)
    if inherited:
        body["inherited"] = [{**field.body(), "from": owner} for field, owner in inherited]
    if relations:
        body["relations"] = [relation.body for relation in relations]
    every = (*shape.fields, *(field for field, _ in inherited))
    keys = [field.name for field in every if field.primary_key]
    if keys:
        body["primary_key"] = keys
    if doc:
        body["doc"] = doc
    for relation in relations:
        groundings.extend(relation.groundings)
    links = [Link("relates_to", relation.key) for relation in relations if relation.key is not None]
    read = 100 if all(field.resolution == "exact" for field in every) else _LEAST["approximate"]
    sure = min([confidence, shape.confidence, read, *(_LEAST.get(r.target.how, 60) for r in relations)])
    return ArtifactDraft(
        kind="entity",
        logical_key=f"entity:{name}",
        title=f"{name} ({shape.form})",
        body=body,
        text=entity_text(body),
        groundings=tuple(dict.fromkeys(groundings)),
        links=tuple(dict.fromkeys(links)),
        confidence=sure,
    )
