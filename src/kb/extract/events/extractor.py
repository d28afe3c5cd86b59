"""The events extractor: signals, tasks, hooks, validators, lifespans, topics and caches, joined by name."""

from __future__ import annotations

from collections.abc import Iterable

from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.events import facts as event_facts
from kb.extract.events.joining import Joining
from kb.extract.events.registry import FAMILIES, VERBS
from kb.model.artifacts import ArtifactDraft

ID = event_facts.SOURCE


class EventsExtractor:
    """What the families in `registry.FAMILIES` read; names made at run time are counted, not guessed."""

    id = ID
    version = 9
    dialects = frozenset({"python"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Mentions: decorators and calls that some family knows."""
        return event_facts.read(parse, VERBS)

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """The artifacts that the file is home to: its declarations', and those it is the first to mention."""
        joining = Joining(file, world)
        for family in FAMILIES:
            yield from family.link(joining)
