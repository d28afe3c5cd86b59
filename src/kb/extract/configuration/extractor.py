"""The configuration extractor: settings and commands of the code, each grounded where it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract import calls
from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.configuration.argparse import ParserReader
from kb.extract.configuration.commands import Commands
from kb.extract.configuration.environment import Environment
from kb.extract.configuration.facts import SOURCE, ConfigurationFacts, Mounted
from kb.extract.configuration.settings import Settings
from kb.extract.expressions import argument, dotted, last, text_of
from kb.extract.reading import Reader
from kb.model.artifacts import ArtifactDraft

_SETTINGS_MODULE = frozenset({"INSTALLED_APPS", "ROOT_URLCONF", "DATABASES"})
_MOUNTING = frozenset({b"add_typer", b"add_command"})


class ConfigurationExtractor:
    """Environment variables, settings fields, framework settings and command lines."""

    id = SOURCE
    version = 1
    dialects = frozenset({"python"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Reads, parsers and mounted commands; keys `<family>:<name>`, `mounted:<child>`, `django-settings`."""
        reads = tuple(Environment(parse).reads())
        parsers = ParserReader(parse).read()
        mounted = tuple(_mounted(parse))
        is_settings = any(
            entry.name in _SETTINGS_MODULE and not entry.scope for entry in parse.module.assignments
        )
        if not (reads or parsers or mounted or is_settings):
            return None
        keys = {f"{read.family}:{read.name}" for read in reads if read.name}
        originals = {entry.alias: entry.name for entry in parse.module.imports if entry.alias and entry.name}
        keys |= {f"mounted:{originals.get(entry.child) or last(entry.child)}" for entry in mounted}
        keys |= {"django-settings"} if is_settings else set()
        return FactOutput(ConfigurationFacts(reads, parsers, mounted, is_settings), tuple(sorted(keys)))

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """Settings and commands that the file is home to."""
        facts = file.own(ConfigurationFacts) or ConfigurationFacts()
        reader = Reader(file, world)
        yield from Settings(file, world, reader, facts).drafts()
        yield from Commands(file, world, reader, facts).drafts()


def _mounted(parse: ParseView) -> Iterator[Mounted]:
    for node in calls.named(parse, _MOUNTING):
        call = parse.expr(node)
        child = argument(call, "typer_instance" if last(call.value) == "add_typer" else "cmd", 0)
        if child is not None and child.kind == "name":
            place = None if last(call.value) == "add_typer" else 1
            name = text_of(argument(call, "name", place)) or ""
            parent = call.value.rpartition(".")[0]
            yield Mounted(parent, dotted(child), name, parse.cite(node), parse.scope_of(node))
