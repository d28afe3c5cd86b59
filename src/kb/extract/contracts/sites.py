"""Reads the sites of one file: calls of the frameworks' vocabulary, and where each stands in the syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import tree_sitter

from kb.extract.api import ParseView
from kb.extract.contracts.facts import (
    CALLEE,
    JOIN,
    RETURNED,
    URLCONF,
    ContractFacts,
    Local,
    Loop,
    Site,
    Vocabulary,
    is_route_decorator,
    last_of,
)
from kb.extract.expressions import dotted, last, positional
from kb.structure.facts import Expr, ModuleFacts

_ROUTERISH = re.compile(r"router|app|api|bp|blueprint|routes|urls|patterns", re.IGNORECASE)
_STOPS = frozenset({"function_definition", "class_definition", "lambda", "module"})
_BRANCHES = frozenset({"if_statement", "elif_clause", "else_clause", "conditional_expression"})
_COMPREHENSIONS = frozenset({"list_comprehension", "generator_expression", "set_comprehension"})
_ADDING = frozenset({"append", "extend", "insert"})
_LISTISH = re.compile(r"patterns|routes|urls", re.IGNORECASE)
_URL_WORDS = frozenset({"path", "re_path", "url", "include"})
_ON_ROUTERS = frozenset({"register", "extend"})
"""Words of the vocabulary that count only on a router."""


def read(parse: ParseView, vocabulary: Vocabulary) -> ContractFacts | None:
    """The file's sites, None where it has nothing to do with routes."""
    decorated = _route_decorators(parse.module, vocabulary)
    aliases = tuple(_aliases(parse.module))
    stated = list(_stated(parse))
    if not decorated and not vocabulary.occurs_in(parse.source):
        return ContractFacts(tuple(stated), aliases=aliases) if aliases or stated else None
    reader = _Reader(parse, vocabulary, decorated)
    sites = [*reader.sites(), *stated]
    if not sites and not aliases:
        return None
    told = dict.fromkeys((*aliases, *reader.chained, *_included_aliases(parse.module, sites)))
    return ContractFacts(tuple(sites), tuple(reader.locals()), tuple(told))


def _stated(parse: ParseView) -> Iterator[Site]:
    """Assignments that mean what a call could: lists joined to lists, the root URL configuration."""
    for assignment in parse.module.assignments:
        value = assignment.value
        if value is None or not assignment.name:
            continue
        if assignment.name == "ROOT_URLCONF" and value.kind == "str":
            yield Site(parse.module_span(assignment.span), Expr(URLCONF, value.value), assignment.scope)
        elif _LISTISH.search(assignment.name):
            for target in _joined(value, assignment.operator == "+="):
                yield Site(
                    parse.module_span(assignment.span),
                    Expr(JOIN, "", (target,)),
                    assignment.scope,
                    owner=assignment.name,
                    branch="if" if assignment.condition else "",
                )


def _joined(value: Expr, adds: bool) -> Iterator[Expr]:
    """Names whose lists `value` takes over."""
    if value.kind == "binop" and value.value == "+":
        for item in value.items:
            yield from _joined(item, True)
    elif value.kind in ("list", "tuple"):
        for item in value.items:
            if item.kind == "star":
                yield from _joined(item.items[0], True)
    elif value.kind in ("name", "call") and (
        adds or value.value.endswith(".urls") or _LISTISH.search(value.value)
    ):
        yield value


def _route_decorators(module: ModuleFacts, vocabulary: Vocabulary) -> set[str]:
    """Dotted callees of decorators that may declare a route (`router.get`)."""
    found = set()
    for definition in module.definitions:
        for decorator in definition.decorators:
            expr = decorator.expr
            if expr.kind == "other":  # one that is larger than facts keep; its site is read from the tree
                callee = CALLEE.match(decorator.source)
                if callee is not None and callee.group(2) in vocabulary.decorators:
                    found.add(callee.group(1))
            elif is_route_decorator(expr, vocabulary.decorators):
                found.add(expr.value or last_of(expr))
    return found


def _aliases(module: ModuleFacts) -> Iterator[tuple[str, str]]:
    for imported in module.imports:
        name, alias = imported.name, imported.alias
        if name and alias and name not in (alias, "*") and _ROUTERISH.search(f"{name} {alias}"):
            yield name, alias
    for assignment in module.assignments:
        value = assignment.value
        if assignment.name and value is not None and value.kind == "name":
            original = last(value.value)
            if original != assignment.name and _ROUTERISH.search(original):
                yield original, assignment.name


def _included_aliases(module: ModuleFacts, sites: Iterable[Site]) -> Iterator[tuple[str, str]]:
    """Renamed imports that a call takes as they are (`include_router(billing_v1)`), whatever they are called."""
    taken = {
        dotted(argument).partition(".")[0]
        for site in sites
        if not site.decorates
        for item in site.expr.items[1:]
        for argument in (item.items if item.kind == "kwarg" else (item,))
        if argument.kind in ("name", "call")
    }
    for imported in module.imports:
        if imported.name and imported.alias in taken and imported.name not in (imported.alias, "*"):
            yield imported.name, imported.alias


class _Reader:
    """Collects the sites of one parse."""

    def __init__(self, parse: ParseView, vocabulary: Vocabulary, decorated: set[str]) -> None:
        self.parse = parse
        self.vocabulary = vocabulary
        self.receivers = {name.rpartition(".")[0] for name in decorated if "." in name}
        self.index: dict[int, int] = {}
        self.which: dict[int, int] = {}
        self.seen: dict[str, int] = {}
        self.functions: dict[int, tuple[tree_sitter.Node, str]] = {}
        self.chained: list[tuple[str, str]] = []
        """`router = users_router = APIRouter()`: (first assigned, other name)."""

    def sites(self) -> list[Site]:
        found: list[Site] = []
        for node in sorted(self._nodes(), key=lambda node: (node.start_byte, -node.end_byte)):
            parent = node.parent
            if parent is not None and parent.type == "decorator":
                site = self._decorator(node, parent)
            else:
                site = self._call(node)
            if site is not None:
                self.index[node.id] = len(found)
                found.append(site)
        return found

    def _nodes(self) -> list[tree_sitter.Node]:
        """Calls of the vocabulary, and calls whose value is what those are made on."""
        urls = b"urls" in self.parse.source
        made = (
            self._made_routers()
            if b"register" in self.parse.source or b".registry" in self.parse.source
            else set()
        )
        found, others = [], []
        for node in self.parse.calls:
            name = self._callee(node)
            parent = node.parent
            if (name in _URL_WORDS and not urls) or (name in _ON_ROUTERS and not self._on_router(node, made)):
                continue
            decorates = parent is not None and (parent.type == "decorator" or _calls(parent, node))
            if name in (self.vocabulary.decorators if decorates else self.vocabulary.callees):
                found.append(node)
                function = node.child_by_field_name("function")
                owner = function.child_by_field_name("object") if function is not None else None
                if owner is not None:
                    self.receivers.add(self._text(owner))
            elif parent is not None and parent.type == "assignment":
                others.append((node, parent))
        return found + [node for node, parent in others if self._makes_receiver(parent)]

    def _callee(self, node: tree_sitter.Node) -> str:
        function = node.child_by_field_name("function")
        if function is not None and function.type == "attribute":
            function = function.child_by_field_name("attribute")
        if function is None or function.type != "identifier":
            return ""
        return self._text(function)

    def _text(self, node: tree_sitter.Node) -> str:
        return self.parse.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _made_routers(self) -> set[str]:
        """Names that are assigned what a class called `...Router` makes."""
        found = set()
        for node in self.parse.calls:
            parent = node.parent
            if parent is not None and parent.type == "assignment" and self._callee(node).endswith("Router"):
                left = parent.child_by_field_name("left")
                found.add(self._text(left) if left is not None else "")
        return found

    def _on_router(self, node: tree_sitter.Node, made: set[str]) -> bool:
        """Whether a `register` (or `registry.extend`) is called on a router, by its name or by what made it."""
        function = node.child_by_field_name("function")
        owner, _, method = self._text(function).rpartition(".") if function is not None else ("", "", "")
        if method == "extend":
            owner, _, method = owner.rpartition(".")
            if method != "registry":
                return False
        return "router" in owner.lower() or owner in made

    def _makes_receiver(self, assignment: tree_sitter.Node) -> bool:
        """Whether it assigns what routes are registered on (an instance of a subclass, a factory's result)."""
        left = assignment.child_by_field_name("left")
        return left is not None and self._text(left) in self.receivers

    def _decorator(self, node: tree_sitter.Node, decorator: tree_sitter.Node) -> Site | None:
        expr = self.parse.expr(node)
        if not is_route_decorator(expr, self.vocabulary.decorators):
            return None
        whole = decorator.parent
        definition = whole.child_by_field_name("definition") if whole is not None else None
        name = definition.child_by_field_name("name") if definition is not None else None
        if whole is None or name is None:
            return None
        handler = self.parse.scope_of(name)
        if whole.id not in self.which:
            self.which[whole.id] = self.seen[handler] = self.seen.get(handler, -1) + 1
        place = self._place(whole)
        return Site(
            self.parse.cite(node), expr, self._enclosing(whole), handler, self.which[whole.id], **place
        )

    def _call(self, node: tree_sitter.Node) -> Site | None:
        outer = node.parent
        if outer is not None and _calls(outer, node):
            expr, whole = self.parse.expr(node), self.parse.expr(outer)
            applied = next(iter(positional(whole)), None)
            if applied is None or not is_route_decorator(expr, self.vocabulary.decorators):
                return None
            place = self._place(outer)
            return Site(self.parse.cite(outer), expr, self.parse.scope_of(node), applied=applied, **place)
        return Site(
            self.parse.cite(node), self.parse.expr(node), self.parse.scope_of(node), **self._place(node)
        )

    def _enclosing(self, node: tree_sitter.Node) -> str:
        """Scope around a decorated definition: that of the function or class that holds it."""
        parent = node.parent
        while parent is not None and parent.type not in ("function_definition", "class_definition", "module"):
            parent = parent.parent
        name = parent.child_by_field_name("name") if parent is not None else None
        return self.parse.scope_of(name) if name is not None else ""

    def _place(self, node: tree_sitter.Node) -> dict[str, Any]:
        """Keyword arguments of `Site` that tell where the node stands."""
        found: dict[str, Any] = {}
        loops: list[Loop] = []
        direct, slot = True, ""
        child, parent = node, node.parent
        while parent is not None and parent.type not in _STOPS:
            kind = parent.type
            if kind == "call" and "container" not in found:
                self._inside_call(parent, child, slot, found)
                direct = False
            elif kind == "keyword_argument" and "container" not in found and not slot:
                name = parent.child_by_field_name("name")
                slot = self._text(name) if name is not None else ""
            elif kind in ("assignment", "augmented_assignment"):
                self._assigned(parent, direct and kind == "assignment", found)
            elif kind == "return_statement":
                found.setdefault("target" if direct else "owner", RETURNED)
            elif kind == "for_statement" or kind in _COMPREHENSIONS:
                loops.extend(self._loops(parent))
                if kind in _COMPREHENSIONS:
                    found["branch"] = "comprehension"
                direct = False
            elif kind in _BRANCHES:
                found.setdefault("branch", "if")
            elif kind not in ("parenthesized_expression", "await", "expression_statement", "block"):
                direct = False
            child, parent = parent, parent.parent
        if parent is not None and parent.type == "function_definition":
            body, name = parent.child_by_field_name("body"), parent.child_by_field_name("name")
            if body is not None and name is not None:
                self.functions.setdefault(body.id, (body, self.parse.scope_of(name)))
        if loops:
            found["loops"] = tuple(loops)
        return found

    def _inside_call(
        self, call: tree_sitter.Node, child: tree_sitter.Node, slot: str, found: dict[str, Any]
    ) -> None:
        if call.id in self.index:
            found["container"] = self.index[call.id]
            if slot:
                found["slot"] = slot
            return
        function = call.child_by_field_name("function")
        if function is not None and function.type == "attribute" and child.type == "argument_list":
            attribute = function.child_by_field_name("attribute")
            owner = function.child_by_field_name("object")
            if attribute is not None and owner is not None and self._text(attribute) in _ADDING:
                found.setdefault("owner", self._text(owner))

    def _assigned(self, statement: tree_sitter.Node, direct: bool, found: dict[str, Any]) -> None:
        left = statement.child_by_field_name("left")
        if left is None or left.type not in ("identifier", "attribute") or "container" in found:
            return
        name = self._text(left)
        if direct and "target" in found:
            self.chained.append((found["target"], name))
        found.setdefault("target" if direct else "owner", name)

    def _loops(self, node: tree_sitter.Node) -> Iterator[Loop]:
        clauses = (
            [node]
            if node.type == "for_statement"
            else [c for c in node.children if c.type == "for_in_clause"]
        )
        for clause in reversed(clauses):
            left, right = clause.child_by_field_name("left"), clause.child_by_field_name("right")
            if left is not None and right is not None:
                yield Loop(self.parse.expr(left), self.parse.expr(right))

    def locals(self) -> Iterator[Local]:
        """Plain assignments at the top of the functions that hold sites."""
        for body, scope in self.functions.values():
            for statement in body.children:
                inner = (
                    statement.children[0]
                    if statement.type == "expression_statement" and statement.children
                    else None
                )
                if inner is None or inner.type != "assignment":
                    continue
                left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
                if (
                    left is not None
                    and right is not None
                    and left.type == "identifier"
                    and right.id not in self.index
                ):
                    yield Local(scope, self._text(left), self.parse.expr(right))


def _calls(outer: tree_sitter.Node, node: tree_sitter.Node) -> bool:
    """Whether `outer` calls what `node` returns."""
    if outer.type != "call":
        return False
    function = outer.child_by_field_name("function")
    return function is not None and function.id == node.id
