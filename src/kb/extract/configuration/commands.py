"""Commands as artifacts: click and Typer from decorators and signatures, argparse from its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kb.extract.api import FileView, WorldView
from kb.extract.configuration.facts import SOURCE, ConfigurationFacts, Mounted, Parser
from kb.extract.configuration.options import argparse_option, click_option, typer_option
from kb.extract.entities.annotations import Typed
from kb.extract.expressions import (
    argument,
    dotted,
    keywords,
    last,
    text_of,
)
from kb.extract.keys import qualified
from kb.extract.reading import Names, Reader
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Decorator, Definition

_DEPTH = 5
"""Groups in groups, and mounts on mounts, are followed this far."""
_CLICK = ("click.", "rich_click.", "asyncclick.", "flask.cli.", "quart.cli.", "cloup.")


class Commands:
    """The commands of one file."""

    def __init__(self, file: FileView, world: WorldView, reader: Reader, facts: ConfigurationFacts) -> None:
        self.file = file
        self.world = world
        self.reader = reader
        self.facts = facts

    def drafts(self) -> Iterator[ArtifactDraft]:
        """Commands by decorator, then argparse's parsers, each in source order."""
        for definition in self.file.module.definitions:
            found = self._kind(self.file.path, definition)
            if found is not None:
                yield self._decorated(definition, *found)
        for entry in self.facts.mounted:
            yield from self._foreign(entry)
        for index, parser in enumerate(self.facts.parsers):
            draft = self._parser(index, parser)
            if draft is not None:
                yield draft

    def _kind(self, path: str, definition: Definition) -> tuple[str, Decorator] | None:
        """`click` or `typer` and the decorator that makes the command, None for another function."""
        for decorator in definition.decorators:
            name = dotted(decorator.expr)
            if last(name) not in ("command", "group", "callback"):
                continue
            scope = definition.symbol_path.rpartition(".")[0].removesuffix(".<locals>")
            made = self._made(path, name, scope)
            if made.startswith("typer."):
                return "typer", decorator
            if last(name) != "callback" and (made.startswith(_CLICK) or made.endswith(".cli.command")):
                return "click", decorator
            owner = name.rpartition(".")[0]
            group = self._function(path, owner, scope) if owner else None
            if group is not None and self._kind(*group) is not None:
                return "click", decorator
            if last(owner) == "cli" and last(name) != "callback":
                return "click", decorator  # Flask's `app.cli`, `bp.cli`
        return None

    def _made(self, path: str, name: str, scope: str) -> str:
        """Full dotted name of a decorator, seen through what made its owner: also a local or a parameter."""
        owner, _, verb = name.rpartition(".")
        if owner and "." not in owner and scope:
            for made in self._facts_of(path).made:
                if (made.name, made.scope) == (owner, scope):
                    maker = self.reader.resolve(path, made.maker, scope).qualified or made.maker
                    return f"{maker}().{verb}"
            definition = self.reader.definition(path, scope)
            for param in definition.params if definition is not None else ():
                if param.name == owner:
                    kind = dotted(Typed(param.annotation).expr)
                    return f"{self.reader.resolve(path, kind, scope).qualified or kind}().{verb}"
        return Names(self.reader, path, scope).named(name, scope).qualified

    def _facts_of(self, path: str) -> ConfigurationFacts:
        row = self.reader.row(path, SOURCE, self.facts)
        return row[0] if row is not None else ConfigurationFacts()

    def _function(self, path: str, name: str, scope: str) -> tuple[str, Definition] | None:
        found = self.reader.resolve(path, name, scope)
        if found.target != "internal" or found.path is None or not found.symbol_path:
            return None
        definition = self.reader.definition(found.path, found.symbol_path)
        return (found.path, definition) if definition is not None else None

    def _decorated(self, definition: Definition, family: str, decorator: Decorator) -> ArtifactDraft:
        name = qualified(self.file, definition.symbol_path)
        groundings = [self.file.ground_module(definition.header, "definition")]
        path, above = self._path(self.file.path, definition, decorator, family)
        groundings += above
        if family == "typer":
            options = [
                typer_option(param) for param in definition.params if param.name not in ("ctx", "self")
            ]
        else:
            options = [option for option, _ in self._click_options(definition)]
            groundings += [ground for _, ground in self._click_options(definition) if ground is not None]
        body: dict[str, Any] = {"command": " ".join(path), "function": name, "family": family}
        if last(dotted(decorator.expr)) in ("group", "callback"):
            body["group"] = True
        owner = dotted(decorator.expr).rpartition(".")[0]
        scope = definition.symbol_path.rpartition(".")[0].removesuffix(".<locals>")
        outer = self.reader.definition(self.file.path, scope) if scope else None
        if outer is not None and owner in {param.name for param in outer.params}:
            body["below"] = "what is handed to the function that adds it"
        return _draft(f"command:{family}:{name}", body, options, _summary(definition.docstring), groundings)

    def _click_options(self, definition: Definition) -> Iterator[tuple[dict[str, Any], Grounding | None]]:
        """Options in the order of the decorators, with what says those that a name or a function keeps."""
        path = self.file.path
        scope = definition.symbol_path.rpartition(".")[0].removesuffix(".<locals>")
        for decorator in definition.decorators:
            own = click_option(decorator.expr)
            name = dotted(decorator.expr)
            if own is not None or last(name) in ("command", "group") or not name:
                yield from [(own, None)] if own is not None else []
                continue
            found = self.reader.resolve(path, name, scope)
            if found.target != "internal" or found.path is None or not found.symbol_path:
                continue
            view = self.reader.view(found.path)
            kept = self.reader.assignment(found.path, found.symbol_path)
            if kept is not None and view is not None:  # `verbose = click.option("--verbose")`
                own = click_option(kept.value) if kept.value is not None else None
                if own is not None:
                    yield own, view.ground_module(kept.span, "option")
                continue
            shares = self.reader.definition(found.path, found.symbol_path)
            inside = f"{found.symbol_path}.<locals>."
            for entry in self._facts_of(found.path).shared if shares is not None and view is not None else ():
                own = click_option(entry.expr)
                if own is None or shares is None or view is None:
                    continue
                if entry.scope == found.symbol_path or entry.scope.startswith(inside):
                    yield own, view.ground_module(shares.header, "option")

    def _path(
        self, path: str, definition: Definition, decorator: Decorator, family: str, depth: int = 0
    ) -> tuple[list[str], list[Grounding]]:
        """The words that call the command, as far as its groups are static, and what says so."""
        own = _command_name(definition, decorator)
        if last(dotted(decorator.expr)) == "callback":
            own = ""
        owner = dotted(decorator.expr).rpartition(".")[0]
        scope = definition.symbol_path.rpartition(".")[0].removesuffix(".<locals>")
        words = [own] if own else []
        if depth > _DEPTH:
            return words, []
        group = self._function(path, owner, scope) if owner else None
        if group is not None:
            found = self._kind(*group)
            view = self.reader.view(group[0])
            if found is not None and view is not None:
                above, grounds = self._path(group[0], group[1], found[1], family, depth + 1)
                return above + words, [*grounds, view.ground_module(group[1].header, "group")]
        if family == "typer":
            above, name, grounds = self._mounted(path, owner, scope, depth)
            return [*above, *filter(None, [name]), *words], grounds
        above, name, grounds = self._mounted(path, definition.name, scope, depth)
        if name or above:
            return [*above, name or own], grounds
        # `manager = Group()`: a group that a call makes, put below another one by its own name or a given one.
        above, name, grounds = self._mounted(path, owner, scope, depth) if owner else ([], "", [])
        return [*above, *filter(None, [name or self._blueprint(path, owner, scope)]), own], grounds

    def _blueprint(self, path: str, owner: str, scope: str) -> str:
        """The word that Flask puts before the commands of a blueprint, "" where there is none."""
        found = self.reader.resolve(path, owner.removesuffix(".cli"), scope)
        if not owner.endswith(".cli") or found.path is None or not found.symbol_path:
            return ""
        entry = self.reader.assignment(found.path, found.symbol_path)
        call = entry.value if entry is not None else None
        if call is None or call.kind != "call" or last(call.value) != "Blueprint":
            return ""
        group = keywords(call).get("cli_group")
        return (text_of(argument(call, "name", 0)) or "") if group is None else (text_of(group) or "")

    def _mounted(
        self, path: str, name: str, scope: str, depth: int
    ) -> tuple[list[str], str, list[Grounding]]:
        """What `add_typer` or `add_command` put something below, and the name that it gets there."""
        for entry in self._facts_of(path).mounted if depth <= _DEPTH and scope else ():
            view = self.reader.view(path)
            if (entry.child, entry.scope) == (name, scope) and view is not None:
                above, grounds = self._above(path, entry, depth + 1)
                return above, entry.name, [*grounds, view.ground(entry.span, "group")]
        meant = self.reader.resolve(path, name, scope)
        if depth > _DEPTH or meant.path is None or not meant.symbol_path:
            return [], "", []
        for holder in self.world.who_has(SOURCE, f"mounted:{last(meant.symbol_path)}"):
            view = self.reader.view(holder)
            for entry in self._facts_of(holder).mounted if view is not None else ():
                child = self.reader.resolve(holder, entry.child, entry.scope)
                if view is None or (child.path, child.symbol_path) != (meant.path, meant.symbol_path):
                    continue
                above, grounds = self._above(holder, entry, depth + 1)
                return above, entry.name, [*grounds, view.ground(entry.span, "group")]
        return [], "", []

    def _above(self, holder: str, entry: Mounted, depth: int) -> tuple[list[str], list[Grounding]]:
        """The words of the group or application that something is mounted on."""
        group = self._function(holder, entry.parent, entry.scope)
        found = self._kind(*group) if group is not None else None
        view = None if group is None else self.reader.view(group[0])
        if group is not None and found is not None and view is not None:
            words, grounds = self._path(group[0], group[1], found[1], found[0], depth)
            return words, [*grounds, view.ground_module(group[1].header, "group")]
        above, name, grounds = self._mounted(holder, entry.parent, entry.scope, depth)
        return [*above, *filter(None, [name])], grounds

    def _foreign(self, entry: Mounted) -> Iterator[ArtifactDraft]:
        """A command that another distribution defines, or that a call makes, put below a group here."""
        found = self.reader.resolve(self.file.path, entry.child, entry.scope)
        if found.target == "internal" and found.path is not None and found.symbol_path:
            definition = self.reader.definition(found.path, found.symbol_path)
            if definition is not None and self._kind(found.path, definition) is not None:
                return
            made = self.reader.assignment(found.path, found.symbol_path)
            if (
                definition is None
                and made is not None
                and made.value is not None
                and made.value.kind == "call"
            ):
                return  # a group that a call makes: its commands say where they are
        elif any((m.name, m.scope) == (entry.child, entry.scope) for m in self.facts.made):
            return
        above, grounds = self._above(self.file.path, entry, 0)
        word = entry.name or last(entry.child).strip("_").replace("_", "-")
        name = found.qualified or entry.child
        body: dict[str, Any] = {
            "command": " ".join([*above, word]),
            "function": name,
            "family": "click",
            "declared_by": name.partition(".")[0]
            if found.target == "external"
            else "not a command that is known",
        }
        draft = _draft(
            f"command:click:{name}", body, (), "", [self.file.ground(entry.span, "definition"), *grounds]
        )
        yield replace(draft, links=(), confidence=80 if found.target == "external" else 60)

    def _parser(self, index: int, parser: Parser) -> ArtifactDraft | None:
        """One artifact per parser that has options, a name or a function of its own."""
        if parser.given and not parser.options:
            return None
        words: list[str] = []
        at = index
        while at >= 0:
            words.insert(0, self.facts.parsers[at].name)
            at = self.facts.parsers[at].parent
        module = self.file.module_name
        django = (
            parser.given
            and ".management.commands." in f".{module}."
            and parser.scope.endswith(".add_arguments")
        )
        if django:
            application = module.replace(".management.commands.", ".")
            key, command = f"command:django:{self.file.key_prefix}{application}", last(module)
        else:
            place = qualified(self.file, parser.scope)
            sub = " ".join(filter(None, words[1:]))
            key = f"command:argparse:{place}" + (f":{sub}" if sub else "")
            command = " ".join(filter(None, words)) or place
        body: dict[str, Any] = {"command": command, "family": "django" if django else "argparse"}
        if parser.given and not django:
            body["parser"] = "handed to the function"
        if parser.dynamic:
            body["resolution"] = "dynamic"
        groundings = [self.file.ground(parser.span, "definition")]
        groundings += [self.file.ground(o.span, "option") for o in parser.options if o.span >= 0]
        if parser.function:
            body["function"] = parser.function
            found = self._function(self.file.path, parser.function, parser.scope)
            if found is not None:
                view = self.reader.view(found[0])
                if view is not None:
                    body["function"] = qualified(view, found[1].symbol_path)
                    groundings.append(view.ground_module(found[1].header, "handler"))
        options = [argparse_option(option) for option in parser.options]
        return _draft(key, body, options, parser.purpose, groundings)


def _draft(
    key: str,
    body: dict[str, Any],
    options: Sequence[dict[str, Any]],
    summary: str,
    groundings: list[Grounding],
) -> ArtifactDraft:
    if summary:
        body["help"] = summary
    if options:
        body["options"] = list(options)
    dynamic = "resolution" in body or any(option.get("resolution") for option in options)
    lines = [f"command {body['command']} ({body['family']})"]
    if summary:
        lines.append(summary)
    if body.get("function"):
        lines.append(f"runs {body['function']}")
    for option in options:
        rest = [f"{k} {v}" for k, v in option.items() if k not in ("names", "kind", "help", "resolution")]
        line = "- " + ", ".join(option["names"]) + (f" ({', '.join(rest)})" if rest else "")
        lines.append(line + (f": {option['help']}" if option.get("help") else ""))
    links = [Link("runs", f"symbol:{body['function']}")] if body.get("function") else []
    return ArtifactDraft(
        kind="command",
        logical_key=key,
        title=f"command {body['command']}",
        body=body,
        text="\n".join(lines),
        groundings=tuple(dict.fromkeys(groundings)),
        links=tuple(links),
        confidence=60 if dynamic else 100,
    )


def _summary(docstring: str | None) -> str:
    return " ".join((docstring or "").strip().split("\n\n")[0].split())[:400]


def _command_name(definition: Definition, decorator: Decorator) -> str:
    call = decorator.expr
    given = argument(call, "name", 0) if call.kind == "call" else None
    return text_of(given) or definition.name.strip("_").replace("_", "-")
