"""argparse: parsers, groups, subparsers and their arguments, followed by variable inside one scope."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import tree_sitter

from kb.extract import calls
from kb.extract.api import ParseView
from kb.extract.configuration.facts import Option, Parser
from kb.extract.expressions import argument, brief, dotted, keywords, positional, text_of, texts_of
from kb.structure.facts import Definition, Expr, SpanRef

_CALLS = frozenset(
    {
        b"ArgumentParser",
        b"add_argument",
        b"add_subparsers",
        b"add_parser",
        b"add_argument_group",
        b"add_mutually_exclusive_group",
        b"set_defaults",
    }
)
_SETTINGS = ("default", "type", "required", "choices", "nargs", "action", "dest", "help", "metavar", "const")


@dataclass(slots=True)
class _Parser:
    span: SpanRef
    scope: str
    name: str = ""
    parent: int = -1
    given: bool = False
    purpose: str = ""
    options: list[Option] = field(default_factory=list)
    function: str = ""
    dynamic: bool = False
    runs: tuple[str, ...] = ()
    """Names that a loop over texts gives it one after the other."""


class ParserReader:
    """Reads the parsers of one blob in source order."""

    def __init__(self, parse: ParseView) -> None:
        self.parse = parse
        self.parsers: list[_Parser] = []
        self._by_variable: dict[tuple[str, str], int] = {}
        self._definitions = {entry.symbol_path: entry for entry in parse.module.definitions}

    def read(self) -> tuple[Parser, ...]:
        """Parsers with what is added to them; a parser that a function is handed counts as one."""
        if not (_CALLS & calls.by_callee(self.parse).keys()):
            return ()
        for node in calls.named(self.parse, _CALLS):
            self._call(node)
        parents = {parser.parent for parser in self.parsers}
        for index, parser in enumerate(tuple(self.parsers)):
            if parser.runs and index not in parents:
                parser.name, parser.dynamic = parser.runs[0], False
                self.parsers += [replace(parser, name=name) for name in parser.runs[1:]]
        return tuple(
            Parser(
                p.span, p.scope, p.name, p.parent, p.given, p.purpose, tuple(p.options), p.function, p.dynamic
            )
            for p in self.parsers
        )

    def _runs(self, node: tree_sitter.Node, name: str) -> tuple[str, ...]:
        """The texts that a `for name in (...)` around the call goes through; none where that cannot be told."""
        loop = node.parent
        while loop is not None and loop.type not in ("function_definition", "module"):
            left, right = loop.child_by_field_name("left"), loop.child_by_field_name("right")
            if loop.type == "for_statement" and left is not None and left.text == name.encode():
                said = texts_of(self.parse.expr(right)) if right is not None else None
                return tuple(dict.fromkeys(said or ()))
            loop = loop.parent
        return ()

    def _call(self, node: tree_sitter.Node) -> None:
        call = self.parse.expr(node)
        callee = call.items[0]
        verb = call.value.rpartition(".")[2] or callee.value
        owner = call.value.rpartition(".")[0]
        scope = self.parse.scope_of(node)
        if verb == "ArgumentParser":
            prog = text_of(argument(call, "prog", 0)) or ""
            described = text_of(argument(call, "description")) or ""
            self._bind(node, scope, self._new(node, scope, prog, purpose=described))
            return
        index = self._find(scope, owner) if owner else self._inner(node)
        if index is None:
            return
        parser = self.parsers[index]
        if verb == "add_argument":
            parser.options.append(self._option(node, call))
        elif verb == "add_parser":
            given = positional(call)[0] if positional(call) else argument(call, "name")
            name = text_of(given)
            made = self._new(
                node, scope, name or f"<{brief(given)}>", index, purpose=text_of(argument(call, "help")) or ""
            )
            self.parsers[made].dynamic = name is None
            if given is not None and given.kind == "name":
                self.parsers[made].runs = self._runs(node, given.value)
            self._bind(node, scope, made)
        elif verb == "set_defaults":
            parser.function = parser.function or dotted(keywords(call).get("func"))
        else:
            self._bind(node, scope, index)

    def _new(
        self, node: tree_sitter.Node, scope: str, name: str = "", parent: int = -1, purpose: str = ""
    ) -> int:
        self.parsers.append(_Parser(self.parse.cite(node), scope, name, parent, purpose=purpose))
        return len(self.parsers) - 1

    def _bind(self, node: tree_sitter.Node, scope: str, index: int) -> None:
        parent = node.parent
        if parent is not None and parent.type == "assignment":
            left = parent.child_by_field_name("left")
            if left is not None and left.text is not None:
                name = left.text.decode("utf-8", "replace")
                self._by_variable[self._place(scope, name), name] = index
        # `sub.add_parser("x").add_argument(...)` and `with` items keep no variable: found by `_inner`.
        self._by_variable["node", str(node.id)] = index

    def _inner(self, node: tree_sitter.Node) -> int | None:
        callee = node.child_by_field_name("function")
        owner = callee.child_by_field_name("object") if callee is not None else None
        return None if owner is None else self._by_variable.get(("node", str(owner.id)))

    def _place(self, scope: str, name: str) -> str:
        """Attributes of `self` belong to the class, other names to the function."""
        return scope.rpartition(".")[0] if name.startswith("self.") else scope

    def _find(self, scope: str, owner: str) -> int | None:
        while True:
            found = self._by_variable.get((self._place(scope, owner), owner))
            if found is not None:
                return found
            handed = self._handed(scope, owner)
            if handed is not None:
                return handed
            if not scope:
                return None
            scope = scope.rpartition(".")[0].removesuffix(".<locals>")

    def _handed(self, scope: str, owner: str) -> int | None:
        definition = self._definitions.get(scope)
        if definition is None or not any(param.name == owner for param in definition.params):
            return None
        index = self._given(definition)
        self._by_variable[scope, owner] = index
        return index

    def _given(self, definition: Definition) -> int:
        span = self.parse.module_span(definition.header)
        self.parsers.append(_Parser(span, definition.symbol_path, given=True))
        return len(self.parsers) - 1

    def _option(self, node: tree_sitter.Node, call: Expr) -> Option:
        given = positional(call)
        names = tuple(item.value for item in given if item.kind == "str")
        options = keywords(call)
        settings = tuple(
            (word, text_of(options[word]) or brief(options[word])) for word in _SETTINGS if word in options
        )
        dynamic = len(names) < len(given) or not names or any(item.kind == "dstar" for item in call.items)
        return Option(names, settings, self.parse.cite(node), dynamic)
