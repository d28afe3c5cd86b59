"""Joins mentions across files into one artifact: who declares, handles, emits, and where it all stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from kb.extract.api import FileView, Resolution, WorldView
from kb.extract.events.facts import SOURCE, EventFacts, FactReader, Mention
from kb.extract.expressions import last
from kb.extract.keys import qualified
from kb.extract.reading import Names, Reader
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Definition


class Found(NamedTuple):
    """A mention with the file that makes it."""

    mention: Mention
    view: FileView


class Joining:
    """Everything a family needs to link one file: its mentions, and others' by key."""

    def __init__(self, file: FileView, world: WorldView) -> None:
        self.file = file
        self.world = world
        self.reader = Reader(file, world)
        own = file.own(EventFacts)
        self.mentions: tuple[Mention, ...] = own.mentions if own is not None else ()
        self._rows: dict[str, list[Found]] = {}

    def own(self, family: str) -> list[Mention]:
        """The file's mentions of one family."""
        return [mention for mention in self.mentions if mention.family == family]

    def holders(self, key: str) -> tuple[str, ...]:
        """Paths of the files with a mention under the key, sorted; a recorded look-up."""
        return tuple(self.world.who_has(SOURCE, key))

    def all_with(self, key: str, families: Iterable[str]) -> list[Found]:
        """Mentions of the given families in every file that carries the key."""
        wanted = frozenset(families)
        return [
            found
            for path in self.holders(key)
            for found in self.in_file(path)
            if found.mention.family in wanted
        ]

    def in_file(self, path: str) -> list[Found]:
        """Every mention of a file."""
        if path not in self._rows:
            if path == self.file.path:
                self._rows[path] = [Found(mention, self.file) for mention in self.mentions]
            else:
                row = self.world.facts(path, SOURCE, EventFacts)
                self._rows[path] = [Found(m, row[1]) for m in row[0].mentions] if row is not None else []
        return self._rows[path]

    def resolve(self, found: Found, name: str) -> Resolution:
        """What a name that a mention uses means, in its own file and scope."""
        return self.reader.resolve(found.view.path, name, found.mention.scope)

    def made(self, found: Found, name: str) -> str:
        """Full dotted name of a name, seen through what made an instance (`celery.Celery().task`)."""
        return (
            Names(self.reader, found.view.path, found.mention.scope)
            .named(name, found.mention.scope)
            .qualified
        )

    def place(self, found: Found) -> str:
        """Qualified name of the definition (or module) that holds a mention."""
        return qualified(found.view, found.mention.scope)

    def function(self, found: Found, name: str) -> tuple[str, Grounding | None]:
        """A function that a mention names: its qualified name, and its header as a handler if internal."""
        answer = self.resolve(found, name)
        if answer.target == "internal" and answer.path is not None and answer.symbol_path:
            definition = self.reader.definition(answer.path, answer.symbol_path)
            view = self.view(answer.path)
            if definition is not None and view is not None:
                return qualified(view, answer.symbol_path), view.ground_module(definition.header, "handler")
        return answer.qualified or name, None

    def definition(self, path: str, symbol_path: str) -> Definition | None:
        """A definition of some file."""
        return self.reader.definition(path, symbol_path)

    def view(self, path: str) -> FileView | None:
        """A file, to ground on."""
        return self.file if path == self.file.path else self.world.file(path)


class Family(FactReader, Protocol):
    """One kind of event, from mentions to artifacts: one plug-in module each."""

    def link(self, joining: Joining) -> Iterable[ArtifactDraft]:
        """The artifacts that the file is home to."""
        ...


class Subject:
    """An artifact in the making: entries by role, each with what it stands on."""

    def __init__(self, kind: str, key: str, title: str) -> None:
        self.kind = kind
        self.key = key
        self.title = title
        self.confidence = 100
        self.notes: dict[str, Any] = {}
        self._entries: dict[str, list[dict[str, Any]]] = {}
        self._groundings: list[Grounding] = []
        self._links: list[Link] = []

    def stand(self, grounding: Grounding | None) -> None:
        """Adds a grounding; None is nothing to add."""
        if grounding is not None:
            self._groundings.append(grounding)

    def link(self, relation: str, key: str) -> None:
        """Adds an edge to another artifact."""
        self._links.append(Link(relation, key))

    def add(self, group: str, **entry: object) -> None:
        """Adds an entry to a group (`handlers`, `emitters`, `reads`...); what is empty is left out."""
        kept = {name: value for name, value in entry.items() if value not in ("", None)}
        entries = self._entries.setdefault(group, [])
        if kept not in entries:
            entries.append(kept)

    def doubt(self, confidence: int) -> None:
        """Lowers the confidence to at most this."""
        self.confidence = min(self.confidence, confidence)

    def has(self, group: str) -> bool:
        """Whether the group has an entry."""
        return group in self._entries

    def draft(self) -> ArtifactDraft:
        """The artifact, with every group in body and text."""
        body = {"name": self.title, **self.notes, **self._entries}
        lines = [self.title]
        lines += [f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in self.notes.items()]
        for group, entries in self._entries.items():
            lines.append(f"{group.replace('_', ' ')}:")
            lines.extend(f"- {_entry(entry)}" for entry in entries)
        return ArtifactDraft(
            kind=self.kind,
            logical_key=self.key,
            title=self.title,
            body=body,
            text="\n".join(lines),
            groundings=tuple(dict.fromkeys(self._groundings)),
            links=tuple(dict.fromkeys(self._links)),
            confidence=self.confidence,
        )


def _shown(value: object) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _entry(entry: dict[str, Any]) -> str:
    first, *rest = entry.items()
    return str(first[1]) + (
        f" ({', '.join(f'{name} {_shown(value)}' for name, value in rest)})" if rest else ""
    )


def short(name: str) -> str:
    """The last two parts of a dotted name: enough to recognise it in a title."""
    head = name.rpartition(".")[0]
    return f"{last(head)}.{last(name)}" if head else name
