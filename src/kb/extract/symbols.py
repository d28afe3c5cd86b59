"""Symbols: one artifact per module, class, function, method and module-level constant.

A function stands on its whole definition. A class stands on its header, its docstring and the headers of
its members, so that an edit inside a method renews neither the class nor the method's siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import tree_sitter

from kb.extract.api import FactOutput, FileView, ParseView, Resolution, WorldView
from kb.extract.expressions import LONGEST, render
from kb.extract.resolution import outer_scope
from kb.extract.signatures import signature, visibility
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Assignment, Definition, Expr, SpanRef

_WORDS = {"class": "Class", "function": "Function", "method": "Method", "lambda": "Function"}
_HOLDS_DEFINITIONS = frozenset(
    {
        "module", "block", "if_statement", "else_clause", "elif_clause", "try_statement", "except_clause",
        "finally_clause", "with_statement", "decorated_definition", "class_definition",
    }
)  # fmt: skip
"""Nodes below which a class may stand without being local to a function."""


class Docstring(msgspec.Struct, frozen=True, array_like=True):
    """Where a docstring stands: the `n`-th class of its symbol path, "" for the module."""

    symbol_path: str
    n: int
    span: SpanRef


class SymbolFacts(msgspec.Struct, frozen=True, array_like=True):
    """The spans of docstrings of the module and of its classes."""

    docstrings: tuple[Docstring, ...] = ()


class SymbolsExtractor:
    """Definitions, as a person would want to read them."""

    id = "symbols"
    version = 3
    dialects = frozenset({"python", "python-stub"})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """The docstrings that are cited as spans of their own; None where there are none."""
        found: list[Docstring] = []
        if parse.module.docstring is not None:
            node = _docstring_node(parse.root)
            if node is not None:
                found.append(Docstring("", 0, parse.cite(node)))
        if any(item.kind == "class" and item.docstring is not None for item in parse.module.definitions):
            counts: dict[str, int] = {}
            for symbol_path, body in _classes(parse):
                n = counts[symbol_path] = counts.get(symbol_path, -1) + 1
                node = _docstring_node(body)
                if node is not None:
                    found.append(Docstring(symbol_path, n, parse.cite(node)))
        return FactOutput(SymbolFacts(tuple(found))) if found else None

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One draft per definition of the file, in source order, and one for the file."""
        return _FileSymbols(file, world).drafts()


def _classes(parse: ParseView) -> Iterator[tuple[str, tree_sitter.Node]]:
    """(symbol path, body) of every class outside of functions, in source order."""
    if parse.root.has_error:
        yield from _classes_below(parse.root, "")
        return
    for symbol_path, node in parse.classes:
        body = node.child_by_field_name("body")
        if body is not None and ".<locals>." not in symbol_path and _stands_outside(node):
            yield symbol_path, body


def _stands_outside(node: tree_sitter.Node) -> bool:
    """Whether nothing that holds the class is more than a condition or a class."""
    holder = node.parent
    while holder is not None:
        if holder.type not in _HOLDS_DEFINITIONS:
            return False
        holder = holder.parent
    return True


def _classes_below(node: tree_sitter.Node, scope: str) -> Iterator[tuple[str, tree_sitter.Node]]:
    """The same in a tree with syntax errors, where not every class is a definition."""
    for child in node.named_children:
        if child.type not in _HOLDS_DEFINITIONS:
            continue
        inner = scope
        if child.type == "class_definition":
            name, body = child.child_by_field_name("name"), child.child_by_field_name("body")
            if name is None or body is None:
                continue
            own = (name.text or b"").decode("utf-8", "replace")
            inner = f"{scope}.{own}" if scope else own
            yield inner, body
        yield from _classes_below(child, inner)


def _docstring_node(body: tree_sitter.Node) -> tree_sitter.Node | None:
    for child in body.named_children:
        if child.type == "comment":
            continue
        if child.type == "expression_statement" and child.named_child_count == 1:
            value = child.named_children[0]
            if value.type in ("string", "concatenated_string"):
                return value
        return None
    return None


class _FileSymbols:
    def __init__(self, file: FileView, world: WorldView) -> None:
        self._file = file
        self._world = world
        self._module = file.module
        facts = file.own(SymbolFacts) or SymbolFacts()
        self._docstrings = {(item.symbol_path, item.n): item.span for item in facts.docstrings}
        self._listed = None if self._module.dunder_all_dynamic else self._module.dunder_all
        self._id = file.key_prefix + file.module_name
        self._name = file.module_name
        self._members = self._member_spans()
        self._counts: dict[str, int] = {}

    def _member_spans(self) -> dict[str, dict[str, SpanRef]]:
        """For each class, the span that shows each member: a header, or the assignment."""
        found: dict[str, dict[str, SpanRef]] = {}
        for definition in self._module.definitions:
            scope = outer_scope(definition.symbol_path)
            found.setdefault(scope, {}).setdefault(definition.name, definition.header)
        for assignment in self._module.assignments:
            if assignment.scope and assignment.name:
                found.setdefault(assignment.scope, {}).setdefault(assignment.name, assignment.span)
        return found

    def drafts(self) -> Iterator[ArtifactDraft]:
        if self._module.module_span >= 0:
            yield self._module_draft()
        for definition in self._module.definitions:
            yield self._definition(definition)
        for assignment in self._module.assignments:
            if _is_constant(assignment):
                yield self._constant(assignment)

    def _module_draft(self) -> ArtifactDraft:
        word = "package" if self._file.is_package else "module"
        docstring = self._module.docstring
        body: dict[str, Any] = {"name": self._name, "kind": word}
        text = f"{word} {self._name}"
        if docstring:
            body["docstring"] = docstring
            text += f"\n\n{docstring}"
        return ArtifactDraft(
            kind="module",
            logical_key=f"module:{self._id}",
            title=self._name,
            body=body,
            text=text,
            groundings=(self._docstring_or("", 0, self._module.module_span, "module"),),
            links=self._parent_package(),
        )

    def _parent_package(self) -> tuple[Link, ...]:
        package = self._name.rpartition(".")[0]
        return (Link("member_of", f"module:{self._file.key_prefix}{package}"),) if package else ()

    def _docstring_or(self, symbol_path: str, n: int, ref: SpanRef, role: str) -> Grounding:
        cited = self._docstrings.get((symbol_path, n))
        if cited is not None:
            return self._file.ground(cited, "docstring")
        return self._file.ground_module(ref, role)

    def _definition(self, definition: Definition) -> ArtifactDraft:
        path = definition.symbol_path
        n = self._counts[path] = self._counts.get(path, -1) + 1
        line = signature(definition)
        decorators = [decorator.source for decorator in definition.decorators]
        scope = outer_scope(path)
        body: dict[str, Any] = {
            "name": f"{self._name}.{path}",
            "kind": definition.kind,
            "signature": line,
            "module": self._name,
            "visibility": visibility(path, self._listed),
        }
        if decorators:
            body["decorators"] = decorators
        if definition.docstring:
            body["docstring"] = definition.docstring
        if definition.is_async:
            body["async"] = True
        if definition.is_generator:
            body["generator"] = True
        if definition.condition:
            body["condition"] = definition.condition
        links = [Link("member_of", self._scope_key(scope))]
        if definition.kind == "class":
            groundings = self._class_grounds(definition, n)
            self._describe_class(definition, body, links)
        else:
            groundings = [self._file.ground_module(definition.span, "definition")]
        lines = [*(f"@{decorator}" for decorator in decorators), line]
        if definition.docstring:
            lines += ["", definition.docstring]
        lines += ["", self._where(definition, scope)]
        if body.get("members"):
            lines.append(f"Members: {', '.join(body['members'])}.")
        return ArtifactDraft(
            kind="symbol",
            logical_key=f"symbol:{self._id}.{path}",
            title=f"{self._name}.{path}",
            body=body,
            text="\n".join(lines),
            groundings=tuple(groundings),
            links=tuple(links),
        )

    def _scope_key(self, scope: str) -> str:
        return f"symbol:{self._id}.{scope}" if scope else f"module:{self._id}"

    def _where(self, definition: Definition, scope: str) -> str:
        owner = f"{self._name}.{scope}" if scope else self._name
        preposition = "of" if definition.kind == "method" else "in"
        return f"{_WORDS[definition.kind]} {preposition} {owner}."

    def _class_grounds(self, definition: Definition, n: int) -> list[Grounding]:
        grounds = [self._file.ground_module(definition.header, "signature")]
        cited = self._docstrings.get((definition.symbol_path, n))
        if cited is not None:
            grounds.append(self._file.ground(cited, "docstring"))
        members = self._members.get(definition.symbol_path, {})
        grounds.extend(
            self._file.ground_module(members[name], "member")
            for name in definition.members
            if name in members
        )
        return grounds

    def _describe_class(self, definition: Definition, body: dict[str, Any], links: list[Link]) -> None:
        written = [base for base in definition.bases if base.kind not in ("kwarg", "dstar")]
        resolved = self._world.bases(self._file.path, definition.symbol_path)
        bases = [
            _base(expr, found) for expr, found in zip(written, resolved, strict=len(written) == len(resolved))
        ]
        if bases:
            body["bases"] = bases
        if definition.members:
            body["members"] = list(definition.members)
        if definition.self_attributes:
            body["attributes"] = list(definition.self_attributes)
        for found in resolved:
            target = found.key or (f"external:{found.qualified}" if found.target == "external" else "")
            if target:
                links.append(Link("inherits", target))

    def _constant(self, assignment: Assignment) -> ArtifactDraft:
        annotation, value = render(assignment.annotation), render(assignment.value)
        if len(value) > LONGEST:
            value = value[: LONGEST - 1] + "…"
        line = assignment.name
        if annotation:
            line += f": {annotation}"
        if value:
            line += f" = {value}"
        body: dict[str, Any] = {
            "name": f"{self._name}.{assignment.name}",
            "kind": "constant" if assignment.name.isupper() else "variable",
            "signature": line,
            "module": self._name,
            "visibility": visibility(assignment.name, self._listed),
        }
        if assignment.condition:
            body["condition"] = assignment.condition
        word = "Constant" if assignment.name.isupper() else "Variable"
        return ArtifactDraft(
            kind="symbol",
            logical_key=f"symbol:{self._id}.{assignment.name}",
            title=f"{self._name}.{assignment.name}",
            body=body,
            text=f"{line}\n\n{word} in {self._name}.",
            groundings=(self._file.ground_module(assignment.span, "definition"),),
            links=(Link("member_of", f"module:{self._id}"),),
        )


def _base(expr: Expr, found: Resolution) -> dict[str, Any]:
    base = {"written": render(expr), "target": found.target, "resolution": found.how}
    if found.how != "unresolved":
        base["name"] = found.qualified
    return base


def _is_constant(assignment: Assignment) -> bool:
    """Module-level names in upper case or with an annotation: what a module states, not what it computes."""
    if assignment.scope or not assignment.name or assignment.operator:
        return False
    return assignment.name.isupper() or assignment.annotation is not None
