"""The configuration extractor: settings and commands of the code, each grounded where it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract import calls
from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.configuration.argparse import ParserReader
from kb.extract.configuration.commands import Commands
from kb.extract.configuration.environment import Environment
from kb.extract.configuration.facts import SOURCE, ConfigurationFacts, Made, Mounted, Read, Shared
from kb.extract.configuration.settings import Settings
from kb.extract.entities.annotations import Typed
from kb.extract.expressions import argument, brief, dotted, keywords, last, text_of, texts_of
from kb.extract.reading import Reader
from kb.model.artifacts import ArtifactDraft

_SETTINGS_MODULE = frozenset({"INSTALLED_APPS", "ROOT_URLCONF", "DATABASES"})
_SETTINGS_NAMES = frozenset(
    {"base", "common", "settings", "default", "defaults", "dev", "development", "prod", "production", "local"}
)
_OPTIONS = frozenset({"option", "argument", "Option", "Argument"})
_CLICK = frozenset({"click", "rich_click", "asyncclick", "cloup"})
_CLICK_OPTIONS = frozenset({b"option", b"argument"})
_MOUNTING = frozenset({b"add_typer", b"add_command"})
_MAKING = frozenset({b"Typer", b"Group", b"AppGroup"})


class ConfigurationExtractor:
    """Environment variables, settings fields, framework settings and command lines."""

    id = SOURCE
    version = 7
    dialects = frozenset({"python"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Reads, parsers and mounted commands; keys `<family>:<name>`, `mounted:<child>`, `django-settings`."""
        reads = (*Environment(parse).reads(), *_option_variables(parse))
        parsers = ParserReader(parse).read()
        mounted = tuple(_mounted(parse))
        sources = tuple(dict.fromkeys(_sources(parse)))
        is_settings = _is_settings(parse)
        made = tuple(_made(parse))
        shared = tuple(_shared(parse))
        if not (reads or parsers or mounted or is_settings or made or sources or shared):
            return None
        keys = {f"{read.family}:{read.name}" for read in reads if read.name}
        originals = {entry.alias: entry.name for entry in parse.module.imports if entry.alias and entry.name}
        keys |= {f"mounted:{originals.get(entry.child) or last(entry.child)}" for entry in mounted}
        keys |= {"django-settings"} if is_settings else set()
        keys |= {"flask-sources"} if sources else set()
        facts = ConfigurationFacts(reads, parsers, mounted, is_settings, made, sources, shared)
        return FactOutput(facts, tuple(sorted(keys)))

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


def _is_settings(parse: ParseView) -> bool:
    """A Django settings module: by what it assigns, or because it builds on another one (`from .base import *`)."""
    names = {entry.name for entry in parse.module.assignments if not entry.scope}
    if names & _SETTINGS_MODULE:
        return True
    builds = any(
        entry.name == "*" and entry.module.rpartition(".")[2] in _SETTINGS_NAMES
        for entry in parse.module.imports
    )
    return builds and any(name.isupper() for name in names)


def _option_variables(parse: ParseView) -> Iterator[Read]:
    """Environment variables that an option of click or Typer takes its value from."""
    for definition in parse.module.definitions:
        given = [
            (decorator.expr, keywords(decorator.expr).get("default")) for decorator in definition.decorators
        ]
        for param in definition.params:
            if param.default is not None:
                given.append((param.default, argument(param.default, "default", 0)))
            # In `Annotated` the words of an option are positional, and the parameter's default is its own.
            given += [(item, param.default) for item in Typed(param.annotation).metadata]
        for call, default in given:
            if call.kind != "call" or last(dotted(call)) not in _OPTIONS or "envvar" not in keywords(call):
                continue
            variables = keywords(call)["envvar"]
            for name in [text_of(variables)] if text_of(variables) else texts_of(variables) or [""]:
                yield Read(
                    "env",
                    name or "",
                    parse.module_span(definition.header),
                    definition.symbol_path,
                    via="an option of the command line",
                    default=None if default is None or brief(default) == "..." else brief(default),
                )


def _shared(parse: ParseView) -> Iterator[Shared]:
    """Options of click that a function applies to another one, by a call or inside a decorator of its own."""
    if not any(entry.module.partition(".")[0] in _CLICK for entry in parse.module.imports):
        return
    for node in calls.named(parse, _CLICK_OPTIONS):
        scope = parse.scope_of(node)
        if scope and node.parent is not None and node.parent.type != "decorator":
            yield Shared(scope, parse.expr(node))
    for definition in parse.module.definitions:
        for decorator in definition.decorators if "<locals>" in definition.symbol_path else ():
            if last(dotted(decorator.expr)).encode() in _CLICK_OPTIONS:
                yield Shared(definition.symbol_path, decorator.expr)


def _made(parse: ParseView) -> Iterator[Made]:
    """Groups and applications in local variables; those of the module's level are in its facts."""
    for node in calls.named(parse, _MAKING):
        scope, statement = parse.scope_of(node), node.parent
        if not scope or statement is None or statement.type != "assignment":
            continue
        left = statement.child_by_field_name("left")
        if left is not None and left.type == "identifier" and left.text is not None:
            yield Made(left.text.decode(), dotted(parse.expr(node)), scope)


def _sources(parse: ParseView) -> Iterator[str]:
    for node in calls.named(parse, frozenset({b"from_object"})):
        call = parse.expr(node)
        if ".config.from_object" in f".{call.value}":
            given = argument(call, "obj", 0)
            written = text_of(given) or dotted(given)
            scope = parse.scope_of(node)
            for definition in parse.module.definitions if scope and given is not None else ():
                # `def create_app(config="shop.config.Production")`: what it is unless a caller says otherwise.
                if definition.symbol_path == scope:
                    defaults = {param.name: text_of(param.default) for param in definition.params}
                    written = defaults.get(written) or written
            if written:
                yield written
