"""Settings as artifacts: environment variables and framework settings joined by name, settings classes' fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kb.extract.api import FileView, WorldView
from kb.extract.configuration.facts import SOURCE, ConfigurationFacts, Read
from kb.extract.entities.pydantic import Pydantic
from kb.extract.expressions import brief, keywords, last, text_of, texts_of
from kb.extract.keys import qualified
from kb.extract.reading import ClassSource, Reader
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Assignment, Expr

_BASES = frozenset(
    {
        "pydantic_settings.BaseSettings",
        "pydantic_settings.main.BaseSettings",
        "pydantic.BaseSettings",
        "pydantic.v1.BaseSettings",
    }
)
_LIKELY = re.compile(r"settings|config|conf|env|options", re.IGNORECASE)
_TITLES = {"env": "environment variable", "django": "Django setting", "flask": "Flask setting"}


class Place(NamedTuple):
    """A read with the file that makes it."""

    read: Read
    view: FileView


class Settings:
    """The settings that one file is home to."""

    def __init__(self, file: FileView, world: WorldView, reader: Reader, facts: ConfigurationFacts) -> None:
        self.file = file
        self.world = world
        self.reader = reader
        self.facts = facts

    def drafts(self) -> Iterator[ArtifactDraft]:
        """Variables and settings that the file is the first to name, dynamic reads, settings classes."""
        named = dict.fromkeys((read.family, read.name) for read in self.facts.reads if read.name)
        for family, name in named:
            paths = self.world.who_has(SOURCE, f"{family}:{name}")
            if paths and paths[0] == self.file.path:
                yield self._joined(family, name, tuple(paths))
        dynamic = [read for read in self.facts.reads if not read.name]
        if dynamic:
            yield self._dynamic(dynamic)
        for definition in self.file.module.definitions:
            if definition.kind == "class" and _LIKELY.search(
                " ".join((definition.name, *(base.value for base in definition.bases)))
            ):
                source = ClassSource(self.reader, self.file.path, definition)
                if any(base.qualified in _BASES for base in source.ancestry()):
                    yield from self._fields(source)

    def _places(self, family: str, name: str, paths: tuple[str, ...]) -> Iterator[Place]:
        for path in paths:
            if path == self.file.path:
                row: tuple[ConfigurationFacts, FileView] | None = (self.facts, self.file)
            else:
                row = self.world.facts(path, SOURCE, ConfigurationFacts)
            for read in row[0].reads if row is not None else ():
                if row is not None and (read.family, read.name) == (family, name):
                    yield Place(read, row[1])

    def _joined(self, family: str, name: str, paths: tuple[str, ...]) -> ArtifactDraft:
        groundings: list[Grounding] = []
        groups: dict[str, list[dict[str, Any]]] = {}
        defaults: list[str] = []
        for read, view in self._places(family, name, paths):
            groundings.append(view.ground(read.span, read.role))
            entry: dict[str, Any] = {"function": qualified(view, read.scope)}
            for word in ("via", "default", "cast"):
                value = getattr(read, word)
                if value:
                    entry[word] = value
            if read.required:
                entry["required"] = True
            if read.default is not None and read.role != "delete":
                defaults.append(read.default)
            group = groups.setdefault(
                {"read": "reads", "write": "writes", "delete": "deletes"}[read.role], []
            )
            if entry not in group:
                group.append(entry)
        body: dict[str, Any] = {"name": name, "family": family}
        if family == "django":
            declared = list(self._declared(name))
            groundings += [grounding for _, grounding in declared]
            if declared:
                body["declared"] = [entry for entry, _ in declared]
                defaults += [entry["value"] for entry, _ in declared if entry["value"]]
        if defaults:
            body["defaults"] = list(dict.fromkeys(defaults))
        if "*" in name:
            body["resolution"] = "a part of the name is made at run time"
        body.update(groups)
        return ArtifactDraft(
            kind="setting",
            logical_key=f"setting:{family}:{name}",
            title=f"{_TITLES[family]} {name}",
            body=body,
            text=_text(f"{_TITLES[family]} {name}", body),
            groundings=tuple(dict.fromkeys(groundings)),
            confidence=60 if "*" in name else 100,
        )

    def _declared(self, name: str) -> Iterator[tuple[dict[str, Any], Grounding]]:
        """Where settings modules of the snapshot assign a Django setting."""
        for path in self.world.who_has(SOURCE, "django-settings"):
            found = self.world.definition(path, name)
            view = self.world.file(path)
            if found is not None and isinstance(found[1], Assignment) and view is not None:
                entry = {"module": view.key_prefix + view.module_name, "value": brief(found[1].value)}
                yield entry, view.ground_module(found[1].span, "declaration")

    def _dynamic(self, reads: list[Read]) -> ArtifactDraft:
        name = qualified(self.file, "")
        body: dict[str, Any] = {
            "name": name,
            "family": "env",
            "count": len(reads),
            "resolution": "the names are made at run time",
            "reads": [{"function": qualified(self.file, read.scope), "via": read.via} for read in reads],
        }
        title = f"environment variables with names made at run time in {name}"
        return ArtifactDraft(
            kind="setting",
            logical_key=f"setting:dynamic:{name}",
            title=title,
            body=body,
            text=_text(title, body),
            groundings=tuple(dict.fromkeys(self.file.ground(read.span, read.role) for read in reads)),
            confidence=60,
        )

    def _fields(self, source: ClassSource) -> Iterator[ArtifactDraft]:
        prefix, grounding = self._prefix(source)
        for field, entry in _settings_fields(source):
            names = (
                _aliases(entry.value) or _aliases(_annotated_field(entry)) or [prefix + field["name"].upper()]
            )
            name = qualified(self.file, f"{source.symbol_path}.{field['name']}")
            body = {**field, "name": name, "family": "field", "environment": names}
            groundings = [self.file.ground_module(entry.span, "field")]
            groundings.append(self.file.ground_module(source.definition.header, "declaration"))
            groundings += [grounding] if grounding is not None else []
            title = f"setting {name}"
            lines = [f"{title}: {field['type']}", f"environment: {', '.join(names)}"]
            if "default" in field:
                lines.append(f"default: {field['default']}")
            if field.get("required"):
                lines.append("required")
            if field.get("description"):
                lines.append(field["description"])
            yield ArtifactDraft(
                kind="setting",
                logical_key=f"setting:field:{name}",
                title=title,
                body=body,
                text="\n".join(lines),
                groundings=tuple(groundings),
                links=tuple(Link("reads", f"setting:env:{variable}") for variable in names),
            )

    def _prefix(self, source: ClassSource) -> tuple[str, Grounding | None]:
        """`env_prefix` of the class or of the nearest base that sets one, and where it is set."""
        for candidate in [source, *(b.source for b in source.ancestry() if b.source is not None)]:
            config = {entry.name: entry for entry in candidate.entries}.get("model_config")
            options = (
                keywords(config.value)
                if config is not None and config.value and config.value.kind == "call"
                else {}
            )
            entry = config if "env_prefix" in options else candidate.nested("Config").get("env_prefix")
            value = options.get("env_prefix") or (entry.value if entry is not None else None)
            view = self.file if candidate.path == self.file.path else self.world.file(candidate.path)
            if entry is not None and text_of(value) and view is not None:
                return (text_of(value) or "").upper(), view.ground_module(entry.span, "prefix")
        return "", None


def _settings_fields(source: ClassSource) -> Iterator[tuple[dict[str, Any], Assignment]]:
    entries = {entry.name: entry for entry in source.entries}
    for field in Pydantic().fields(source):
        if field.name in entries:
            yield field.body(), entries[field.name]


def _annotated_field(entry: Assignment) -> Expr | None:
    annotation = entry.annotation
    if annotation is None or annotation.kind != "subscript":
        return None
    return next(
        (item for item in annotation.items[1:] if item.kind == "call" and last(item.value) == "Field"), None
    )


def _aliases(call: Expr | None) -> list[str]:
    """Names that `Field(validation_alias=..., alias=..., env=...)` gives the variable."""
    if call is None or call.kind != "call" or last(call.value) != "Field":
        return []
    options = keywords(call)
    for word in ("validation_alias", "alias", "env"):
        given = options.get(word)
        if given is None:
            continue
        if text_of(given):
            return [given.value]
        if texts_of(given):
            return texts_of(given) or []
        if given.kind == "call" and last(given.value) == "AliasChoices":
            return [item.value for item in given.items[1:] if item.kind == "str"]
    return []


def _text(title: str, body: dict[str, Any]) -> str:
    lines = [title]
    if body.get("resolution"):
        lines.append(body["resolution"])
    if body.get("defaults"):
        lines.append(f"default: {', '.join(body['defaults'])}")
    lines += [f"declared in {entry['module']}: {entry['value']}" for entry in body.get("declared", ())]
    for group in ("reads", "writes", "deletes"):
        for entry in body.get(group, ()):
            rest = [
                f"{name} {value}" for name, value in entry.items() if name not in ("function", "required")
            ]
            rest += ["required"] if entry.get("required") else []
            lines.append(f"{group[:-1]} by {entry['function']}" + (f" ({', '.join(rest)})" if rest else ""))
    return "\n".join(lines)
