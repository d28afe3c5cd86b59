"""The families of events that kb knows. A new one is one module and one line here."""

from __future__ import annotations

from kb.extract.events.caches import Caches
from kb.extract.events.dynamic import Dynamic
from kb.extract.events.facts import VerbTable
from kb.extract.events.hooks import Hooks
from kb.extract.events.joining import Family
from kb.extract.events.lifespan import Lifespans
from kb.extract.events.signals import Signals
from kb.extract.events.tasks import Tasks
from kb.extract.events.topics import Topics
from kb.extract.events.validators import Validators

FAMILIES: tuple[Family, ...] = (
    Signals(),
    Tasks(),
    Hooks(),
    Validators(),
    Lifespans(),
    Topics(),
    Caches(),
    Dynamic(),
)
VERBS = VerbTable(FAMILIES)
