"""The `module` facts of a Python file, made from the outline that the walk left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import tree_sitter

from kb.model.spans import SpanKey
from kb.structure.facts import (
    Assignment,
    Definition,
    DynamicImport,
    Expr,
    Import,
    ModuleFacts,
    Param,
    SpanRef,
)
from kb.structure.python import grammar as g
from kb.structure.python.dunder_all import read_dunder_all
from kb.structure.python.expressions import Expressions
from kb.structure.python.literal_forms import plain_value
from kb.structure.python.literals import as_text
from kb.structure.python.outline import AssignmentRecord, DefinitionRecord, ImportRecord, Outline, Place
from kb.structure.python.render import meaningful, render
from kb.structure.python.signatures import decorators_of, parameters_of

Node: TypeAlias = tree_sitter.Node

LARGEST_VALUE = 256
"""Nodes of an assigned value that are read; a larger one is left as unread."""

_DYNAMIC_TAILS = (b"import_module", b"__import__")
_DYNAMIC = {"importlib.import_module", "import_module", "__import__", "builtins.__import__"}


class ModuleReader:
    """Makes the facts of one file."""

    def __init__(
        self,
        source: bytes,
        root: Node,
        outline: Outline,
        refer: Callable[[SpanKey], SpanRef],
        cite: Callable[[Node], SpanRef],
        scope_of: Callable[[Node], str],
    ) -> None:
        self.source = source
        self.root = root
        self.outline = outline
        self.expressions = Expressions(source)
        self._refer = refer
        self._cite = cite
        self._scope_of = scope_of
        self._members: dict[int, dict[str, None]] = {}

    def read(self) -> ModuleFacts:
        """Every field, each in source order."""
        outline = self.outline
        imports = [item for record in outline.imports for item in self._imports(record)]
        assignments = [item for record in outline.assignments for item in self._assignments(record)]
        self._collect_members(imports, assignments)
        definitions = tuple(self._definition(at, record) for at, record in enumerate(outline.definitions))
        exported = read_dunder_all(self.expressions, outline, self._ref, self._cite, self._scope_of)
        assert outline.module is not None
        return ModuleFacts(
            docstring=self._docstring(outline.docstring),
            module_span=self._ref(outline.module),
            definitions=definitions,
            imports=tuple(imports),
            dynamic_imports=tuple(self._dynamic_imports(imports)),
            assignments=tuple(assignments),
            dunder_all=exported.names,
            dunder_all_dynamic=exported.dynamic,
            dunder_all_spans=exported.spans,
            has_getattr=any(
                definition.symbol_path == "__getattr__" and definition.kind != "class"
                for definition in outline.definitions
            ),
            has_main_guard=self._has_main_guard(),
        )

    def _ref(self, place: Place | None) -> SpanRef:
        assert place is not None  # every record has its place once the walk is over
        return self._refer(place.key)

    def _text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8")

    def _docstring(self, node: Node | None) -> str | None:
        return None if node is None else clean_docstring(as_text(plain_value(self.source, node)))

    def _definition(self, at: int, record: DefinitionRecord) -> Definition:
        node = record.node
        is_class = record.kind == "class"
        returns = type_params = None
        bases: tuple[Expr, ...] = ()
        params: tuple[Param, ...] = ()
        for child in node.children:
            kind = child.kind_id
            if kind == g.TYPE:
                returns = self.expressions.build(child)
            elif kind in _PARAMETERS:
                params = parameters_of(self.expressions, child)
            elif kind == g.ARGUMENT_LIST and is_class:
                bases = tuple(self.expressions.build(base) for base in meaningful(child.children))
            elif kind == g.TYPE_PARAMETER:
                type_params = ", ".join(render(self.source, one) for one in meaningful(child.children))
        return Definition(
            kind=record.kind,
            name=record.name,
            symbol_path=record.symbol_path,
            span=self._ref(record.place),
            header=self._ref(record.header),
            parent=record.parent,
            is_async=record.is_async,
            decorators=decorators_of(self.expressions, record.decorators),
            params=params,
            returns=returns,
            bases=bases,
            type_params=type_params or "",
            docstring=self._docstring(record.docstring),
            is_generator=record.is_generator,
            condition=record.condition,
            ordinal=record.ordinal,
            members=tuple(self._members.get(at, ())),
            self_attributes=tuple(dict.fromkeys(record.self_attributes)),
        )

    def _imports(self, record: ImportRecord) -> Iterable[Import]:
        node = record.node
        module, level = "", 0
        names = meaningful(node.children)
        if node.kind_id == _FUTURE_IMPORT:
            module = "__future__"
        elif node.kind_id == _FROM_IMPORT:
            module, level = self._from_module(names.pop(0))
        for bound in names:
            child, alias = bound, None
            if bound.kind_id == _ALIASED:
                child, alias_node = meaningful(bound.children)[:2]
                alias = self._text(alias_node)
            name = "*" if child.kind_id == _WILDCARD else self._dotted(child)
            imported = (module, name) if node.kind_id != _PLAIN_IMPORT else (name, None)
            yield Import(
                self._ref(record.place),
                imported[0],
                imported[1],
                alias,
                level,
                record.scope,
                record.condition,
                record.ordinal,
            )

    def _from_module(self, node: Node) -> tuple[str, int]:
        if node.kind_id != _RELATIVE:
            return self._dotted(node), 0
        prefix, *dotted = meaningful(node.children)
        return (self._dotted(dotted[0]) if dotted else ""), self._text(prefix).count(".")

    def _dotted(self, node: Node) -> str:
        return ".".join(self._text(child) for child in node.children if child.kind_id == g.IDENTIFIER)

    def _assignments(self, record: AssignmentRecord) -> Iterable[Assignment]:
        targets, annotation, value, operator = self._parts(record.node)
        for target in targets:
            expression = self.expressions.build(target)
            is_name = target.kind_id == g.IDENTIFIER
            yield Assignment(
                name=expression.value if is_name else "",
                span=self._ref(record.place),
                scope=record.scope,
                annotation=annotation,
                value=value,
                target=None if is_name else expression,
                operator=operator,
                condition=record.condition,
                ordinal=record.ordinal,
            )

    def _parts(self, node: Node) -> tuple[list[Node], Expr | None, Expr | None, str]:
        """Targets, annotation, value and operator; a chain `a = b = v` has the targets of both."""
        if node.kind_id == g.TYPE_ALIAS:
            name, value = meaningful(node.children)[:2]
            return _names_of(name), None, self._value(value), ""
        if node.kind_id == g.AUGMENTED_ASSIGNMENT:
            left, right = meaningful(node.children)[:2]
            operator = next(child for child in node.children if not child.is_named)
            return _names_of(left), None, self._value(right), self._text(operator)
        targets: list[Node] = []
        annotation = None
        while node.kind_id == g.ASSIGNMENT:
            left, *rest = meaningful(node.children)
            targets += _names_of(left)
            if rest and rest[0].kind_id == g.TYPE:
                annotation = self.expressions.build(rest.pop(0))
            if not rest:
                return targets, annotation, None, ""
            node = rest[-1]
        return targets, annotation, self._value(node), ""

    def _value(self, node: Node) -> Expr:
        return self.expressions.build_bounded(node, LARGEST_VALUE)

    def _collect_members(self, imports: list[Import], assignments: list[Assignment]) -> None:
        """The names that each class body binds, in source order."""
        owners = {record.ordinal: record.owner for record in self.outline.imports}
        owners |= {record.ordinal: record.owner for record in self.outline.assignments}
        bound = [(d.ordinal, d.owner, d.name) for d in self.outline.definitions if d.kind != "lambda"]
        bound += [(a.ordinal, owners[a.ordinal], a.name) for a in assignments if a.name]
        for item in imports:
            name = item.alias or (item.name or item.module.partition(".")[0])
            if name != "*":
                bound.append((item.ordinal, owners[item.ordinal], name))
        for _, owner, name in sorted(bound, key=lambda entry: entry[0]):
            if owner >= 0:
                self._members.setdefault(owner, {})[name] = None

    def _dynamic_imports(self, imports: Iterable[Import]) -> Iterable[DynamicImport]:
        if b"__import__" not in self.source and b"import_module" not in self.source:
            return
        known = _DYNAMIC | set(_renamed(imports))
        tails = tuple({*_DYNAMIC_TAILS, *(name.encode() for name in known)})
        for call in self.outline.calls:
            function = call.children[0]
            if not self.source.endswith(tails, function.start_byte, function.end_byte):
                continue
            expression = self.expressions.build(call)
            if expression.value in known:
                positional = [item for item in expression.items[1:] if item.kind != "kwarg"]
                named = {item.value: item.items[0] for item in expression.items[1:] if item.kind == "kwarg"}
                package = None
                if not expression.value.endswith("__import__"):
                    package = positional[1] if len(positional) > 1 else named.get("package")
                yield DynamicImport(
                    self._cite(call),
                    expression.value,
                    positional[0] if positional else named.get("name"),
                    package,
                    self._scope_of(call),
                )

    def _has_main_guard(self) -> bool:
        if b"__main__" not in self.source:
            return False
        for statement in self.root.children:
            if statement.kind_id == _IF:
                condition = render(self.source, meaningful(statement.children)[0])
                if condition in ('__name__ == "__main__"', '"__main__" == __name__'):
                    return True
        return False


def _renamed(imports: Iterable[Import]) -> Iterable[str]:
    """What a file calls `import_module` where it gives it, or `importlib`, another name."""
    for entry in imports:
        if entry.alias and not entry.level and entry.module == "importlib":
            if entry.name is None:
                yield f"{entry.alias}.import_module"
            elif entry.name == "import_module":
                yield entry.alias


def _names_of(target: Node) -> list[Node]:
    """The single targets of an assignment, lists and tuples taken apart."""
    if target.kind_id in _HOLDERS:
        return [name for child in meaningful(target.children) for name in _names_of(child)]
    if target.kind_id in _GENERIC_TYPES:
        return meaningful(target.children)[:1]
    return [target]


def clean_docstring(text: str) -> str:
    """The docstring without its indentation, as `inspect.cleandoc` leaves it."""
    lines = text.expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip(" ")) for line in lines[1:] if line.strip(" ")]
    margin = min(margins, default=0)
    cleaned = [lines[0].lstrip(" "), *(line[margin:] for line in lines[1:])]
    while cleaned and not cleaned[-1].strip(" "):
        cleaned.pop()
    while cleaned and not cleaned[0].strip(" "):
        cleaned.pop(0)
    return "\n".join(line.rstrip() for line in cleaned)


_PARAMETERS = g.kinds("parameters", "lambda_parameters")
_HOLDERS = g.kinds("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "type")
_GENERIC_TYPES = g.kinds("generic_type")
_ALIASED = g.kind("aliased_import")
_WILDCARD = g.kind("wildcard_import")
_RELATIVE = g.kind("relative_import")
_PLAIN_IMPORT = g.kind("import_statement")
_FROM_IMPORT = g.kind("import_from_statement")
_FUTURE_IMPORT = g.kind("future_import_statement")
_IF = g.kind("if_statement")
