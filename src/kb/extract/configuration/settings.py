"""Settings as artifacts: environment variables and framework settings joined by name, settings classes' fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kb.extract.api import FileView, WorldView
from kb.extract.configuration.environment_names import ENV_MAKERS, ENV_PACKAGES
from kb.extract.configuration.facts import SOURCE, ConfigurationFacts, Read
from kb.extract.entities.pydantic import Pydantic
from kb.extract.expressions import brief, dotted, keywords, last, text_of, texts_of
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
_TEST = re.compile(r"(?:^|\.)(?:tests?|test_\w*|\w+_tests?|conftest)(?:\.|$)")
_TITLES = {"env": "environment variable", "django": "Django setting", "flask": "Flask setting"}
_GROUPS = {"read": "reads", "write": "writes", "delete": "deletes"}


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
            places = list(self._places(family, name, tuple(paths)))
            if places and places[0].view.path == self.file.path:
                yield self._joined(family, name, places)
        for family in _TITLES:
            dynamic = [read for read in self.facts.reads if not read.name and read.family == family]
            if dynamic:
                yield self._dynamic(family, dynamic)
        for definition in self.file.module.definitions:
            if definition.kind == "class" and _LIKELY.search(
                " ".join((definition.name, *(base.value for base in definition.bases)))
            ):
                source = ClassSource(self.reader, self.file.path, definition)
                if any(base.qualified in _BASES for base in source.ancestry()):
                    yield from self._fields(source)

    def _places(self, family: str, name: str, paths: tuple[str, ...]) -> Iterator[Place]:
        for path in paths:
            row = self.reader.row(path, SOURCE, self.facts)
            for read in row[0].reads if row is not None else ():
                if row is not None and (read.family, read.name) == (family, name):
                    place = Place(read, row[1])
                    if not read.reader or self._reads(place):
                        yield place

    def _reads(self, place: Place) -> bool:
        """Whether an imported name is bound to what reads the environment (`Config()`, `Env()`)."""
        found = self.reader.resolve(place.view.path, place.read.reader, place.read.scope)
        if found.target != "internal" or found.path is None or not found.symbol_path:
            return False
        entry = self.reader.assignment(found.path, found.symbol_path)
        value = entry.value if entry is not None else None
        if value is None or value.kind != "call":
            return False
        made = self.reader.resolve(found.path, value.value, "").qualified
        return last(value.value) in ENV_MAKERS and made.startswith(tuple(f"{name}." for name in ENV_PACKAGES))

    def _joined(self, family: str, name: str, places: list[Place]) -> ArtifactDraft:
        groundings: list[Grounding] = []
        groups: dict[str, list[dict[str, Any]]] = {}
        defaults: list[str] = []
        for read, view in places:
            groundings.append(view.ground(read.span, read.role))
            entry: dict[str, Any] = {"function": qualified(view, read.scope)}
            entry.update((word, value) for word in ("via", "cast") if (value := getattr(read, word)))
            given = read.role == "read" or read.via.endswith("setdefault")
            # What an application sets is what it is by default; what a test sets is not.
            given = given or (family != "env" and not _TEST.search(view.module_name))
            if read.default is not None:
                entry["default" if given else "value"] = read.default
            if read.required:
                entry["required"] = True
            if read.default is not None and given:
                defaults.append(read.default)
            group = groups.setdefault(_GROUPS[read.role], [])
            if entry not in group:
                group.append(entry)
        body: dict[str, Any] = {"name": name, "family": family}
        if family in ("django", "flask"):
            declared = list(self._declared(name) if family == "django" else self._flask_declared(name))
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

    def _flask_declared(self, name: str) -> Iterator[tuple[dict[str, Any], Grounding]]:
        """Where a module or class that `from_object` is given assigns a setting."""
        done: set[tuple[str, str]] = set()
        for holder in self.world.who_has(SOURCE, "flask-sources"):
            row = self.reader.row(holder, SOURCE, self.facts)
            for written in row[0].sources if row is not None else ():
                path, scope = self._source(holder, written)
                if path is None or (path, scope) in done:
                    continue
                done.add((path, scope))
                place, entry = self._assigned(path, scope, name)
                view = self.reader.view(place)
                if entry is not None and view is not None:
                    where = {"module": qualified(view, entry.scope), "value": brief(entry.value)}
                    yield where, view.ground_module(entry.span, "declaration")

    def _assigned(self, path: str, scope: str, name: str) -> tuple[str, Assignment | None]:
        """The assignment of a setting in a module, in a class or in one of its bases."""
        if not scope:
            return path, self.reader.assignment(path, name)
        source = self.reader.class_at(path, scope)
        if source is None:  # `Config = ServerConfig()`
            made = self.reader.assignment(path, scope)
            source = self.reader.class_named(path, dotted(made.value), "") if made is not None else None
        bases = source.ancestry() if source is not None else ()
        for candidate in [source, *(base.source for base in bases)]:
            for entry in candidate.entries if candidate is not None else ():
                if candidate is not None and entry.name == name:
                    return candidate.path, entry
        return path, None

    def _source(self, holder: str, written: str) -> tuple[str | None, str]:
        """File and class ("" for the module) that `from_object` is given, as text or as a name."""
        found = self.reader.resolve(holder, written, "")
        if found.target == "internal" and found.path is not None:
            return found.path, found.symbol_path or ""
        module, _, attribute = written.rpartition(".")
        for name, rest in ((written, ""), (module, attribute)):
            path = self.world.module(name) if name else None
            if path is not None and not path.endswith("/"):
                return path, rest
        return None, ""

    def _dynamic(self, family: str, reads: list[Read]) -> ArtifactDraft:
        name = qualified(self.file, "")
        groups: dict[str, list[dict[str, str]]] = {}
        for read in reads:
            entry = {"function": qualified(self.file, read.scope), "via": read.via}
            groups.setdefault(_GROUPS[read.role], []).append(entry)
        body: dict[str, Any] = {
            "name": name,
            "family": family,
            "count": len(reads),
            "resolution": "the names are made at run time",
            **groups,
        }
        title = f"{_TITLES[family]}s with names made at run time in {name}"
        return ArtifactDraft(
            kind="setting",
            logical_key=f"setting:dynamic:{name}" if family == "env" else f"setting:dynamic:{family}:{name}",
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
            view = self.reader.view(candidate.path)
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
