"""The normal form of statements that are spans of their own: definitions, imports, assignments.

Each is hashed by itself and stands in its parent as a digest. Signatures are hashed apart from bodies,
so that a header span changes with the signature alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from kb.structure.python import grammar as g
from kb.structure.python.errors import kept_inside
from kb.structure.python.literal_forms import plain_string_of, plain_value
from kb.structure.python.outline import (
    AssignmentRecord,
    DefinitionRecord,
    ImportRecord,
    Place,
    Scope,
)
from kb.structure.python.walk import CLOSE, TUPLE, Handler, Node, Walk, str_item, text_item

_ASSIGNMENTS = frozenset({g.ASSIGNMENT, g.AUGMENTED_ASSIGNMENT})
_BARE_LISTS = g.kinds("pattern_list", "expression_list")
_TARGET_LISTS = g.kinds("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern")
_MAYBE_TEXT = frozenset({g.STRING, g.CONCATENATED_STRING, g.PARENTHESIZED})
_MAYBE_LAMBDA = g.LAMBDAS | {g.PARENTHESIZED}
_SINGLE_TARGETS = g.TUPLE_PATTERNS | {g.IDENTIFIER}
_PARAMETERS = g.kind("parameters")
_ASYNC = g.token("async")


def module(walk: Walk, root: Node) -> None:
    """Walks a whole file."""
    walk.out.append(b"(module")
    docstring = None
    if root.kind_id == g.ERROR_KIND:
        error(walk, root, 0)
    else:
        docstring, rest = _without_docstring(walk, root.children)
        walk.emit(rest, 1)
    walk.out.append(CLOSE)
    size = len(walk.source)
    lines = len(walk.source.splitlines())
    place = Place("module", "", walk.fold(0), 0, size, 1, max(lines, 1))
    walk.outline.places.append(place)
    walk.outline.module = place
    walk.outline.docstring = docstring


def _without_docstring(walk: Walk, statements: list[Node]) -> tuple[Node | None, list[Node]]:
    """The docstring, and the statements without it."""
    for at, statement in enumerate(statements):
        if statement.kind_id == g.COMMENT:
            continue
        string = plain_string_of(walk.source, statement)
        return string, statements if string is None else statements[at + 1 :]
    return None, statements


def _place(walk: Walk, kind: str, path: str, fingerprint: bytes, start: Node, end: Node) -> Place:
    place = Place(
        kind,
        path,
        fingerprint,
        start.start_byte,
        end.end_byte,
        start.start_point.row + 1,
        end.end_point.row + 1,
    )
    walk.outline.places.append(place)
    return place


# --- classes and functions ----------------------------------------------------------------------------


def _decorated(walk: Walk, node: Node, depth: int) -> None:
    definition = next((child for child in node.children if child.kind_id in (g.FUNCTION, g.CLASS)), None)
    if definition is None:  # only inside a region with a syntax error
        walk.emit(node.children, depth + 1)
        return
    decorators = [child for child in node.children if child.kind_id == g.DECORATOR]
    _define(walk, definition, depth, node, decorators)


def _definition(walk: Walk, node: Node, depth: int) -> None:
    _define(walk, node, depth, node, [])


class _Parts(NamedTuple):
    """The children of a definition by what they are for."""

    name: Node | None
    parameters: Node | None
    body: Node | None
    end: Node
    """Where the header ends: the colon."""
    signature: list[Node]
    is_async: bool


def _parts(definition: Node) -> _Parts:
    name = parameters = body = None
    end = definition
    is_async = False
    signature = []
    for child in definition.children:
        kind = child.kind_id
        if kind in g.BLOCKS:
            body = child
        elif kind == g.COLON:
            end = child
        else:
            signature.append(child)
            if kind == g.IDENTIFIER:
                name = child
            elif kind == _PARAMETERS:
                parameters = child
            elif kind == _ASYNC:
                is_async = True
    return _Parts(name, parameters, body, end, signature, is_async)


def _define(walk: Walk, node: Node, depth: int, whole: Node, decorators: list[Node]) -> None:
    outer = walk.scope
    parts = _parts(node)
    record = _record(walk, node, parts, decorators)
    index = len(walk.outline.definitions)
    walk.outline.definitions.append(record)
    is_class = record.kind == "class"
    mark = len(walk.out)
    walk.out.append(b"(class" if is_class else b"(function")
    _header(walk, parts, depth, whole, record)
    generator, walk.generator = walk.generator, False
    walk.scope = _inner_scope(walk, parts, record, index)
    if parts.body is not None:
        record.docstring, rest = _without_docstring(walk, parts.body.children)
        walk.emit(rest, depth + 1)
    walk.scope = outer
    record.is_generator, walk.generator = walk.generator and not is_class, generator
    walk.out.append(CLOSE)
    record.place = _place(walk, record.kind, record.symbol_path, walk.fold(mark), whole, node)


def _record(walk: Walk, node: Node, parts: _Parts, decorators: list[Node]) -> DefinitionRecord:
    outer = walk.scope
    in_class = outer.level == "class"
    name = "" if parts.name is None else walk.text(parts.name).decode("utf-8")
    kind = "class" if node.kind_id == g.CLASS else "method" if in_class else "function"
    record = DefinitionRecord(
        kind,
        name,
        outer.prefix + name,
        node,
        outer.definition,
        outer.definition if in_class else -1,
        outer.condition,
        walk.next_ordinal(),
        parts.is_async,
    )
    record.decorators = decorators
    return record


def _header(walk: Walk, parts: _Parts, depth: int, whole: Node, record: DefinitionRecord) -> None:
    """Writes decorators, name, parameters or bases and return type as one digest."""
    mark = len(walk.out)
    walk.out.append(b"(header")
    if record.decorators:
        walk.emit(record.decorators, depth + 1)
    walk.emit(parts.signature, depth + 1)
    walk.out.append(CLOSE)
    kind = "class_header" if record.kind == "class" else "function_header"
    record.header = _place(walk, kind, record.symbol_path, walk.fold(mark), whole, parts.end)


def _inner_scope(walk: Walk, parts: _Parts, record: DefinitionRecord, index: int) -> Scope:
    outer = walk.scope
    path = record.symbol_path
    if record.kind == "class":
        return Scope(path, path + ".", "class", index)
    inner = Scope(path, path + ".<locals>.", "function", index, "", outer.self_name, outer.owner)
    if record.kind == "method":
        static = any(walk.text(decorator) == b"@staticmethod" for decorator in record.decorators)
        inner.self_name = b"" if static else _first_parameter(walk, parts.parameters)
        inner.owner = outer.definition
    return inner


def _first_parameter(walk: Walk, parameters: Node | None) -> bytes:
    for child in parameters.children if parameters is not None else ():
        if child.kind_id == g.IDENTIFIER:
            return walk.text(child)
        if child.kind_id in g.NAMED:
            name = child.children[0] if child.children else child
            return walk.text(name) if name.kind_id == g.IDENTIFIER else b""
    return b""


# --- imports and assignments --------------------------------------------------------------------------


def _import(walk: Walk, node: Node, depth: int) -> None:
    mark = len(walk.out)
    walk.out.append(b"(import_from_statement" if node.kind_id != _PLAIN_IMPORT else b"(import_statement")
    if node.kind_id == _FUTURE_IMPORT:
        walk.out.append(b"__future__")
    walk.emit(node.children, depth + 1)
    walk.out.append(CLOSE)
    scope = walk.scope
    place = _place(walk, "import", scope.path, walk.fold(mark), node, node)
    owner = scope.definition if scope.level == "class" else -1
    walk.outline.imports.append(
        ImportRecord(node, place, scope.path, owner, scope.condition, walk.next_ordinal())
    )


def _expression_statement(walk: Walk, node: Node, depth: int) -> None:
    children = node.children
    if len(children) == 1:
        child = children[0]
        kind = child.kind_id
        if kind in _ASSIGNMENTS:
            _assignment_statement(walk, node, child, depth)
            return
        if kind in _MAYBE_TEXT:
            string = plain_string_of(walk.source, node)
            if string is not None:
                _bare_string(walk, string)
                return
        walk.emit(children, depth + 1)
        return
    spread = any(child.kind_id == g.COMMA for child in children)
    if spread:
        walk.out.append(TUPLE)
    walk.emit(children, depth + 1)
    if spread:
        walk.out.append(CLOSE)


def _bare_string(walk: Walk, string: Node) -> None:
    """A string that is a statement but no docstring: formatters re-indent it as if it were one."""
    value = plain_value(walk.source, string)
    lines = [line.strip() for line in value.strip().split(b"\n")]
    walk.out += (b"(text", str_item(b"\n".join(lines)), CLOSE)


def _type_alias(walk: Walk, node: Node, depth: int) -> None:
    _assignment_statement(walk, node, node, depth)


def _assignment_statement(walk: Walk, statement: Node, node: Node, depth: int) -> None:
    scope = walk.scope
    function = _lambda_of(node) if node.kind_id == g.ASSIGNMENT else None
    if scope.level == "function" and function is None:
        _write_assignment(walk, node, depth)
        return
    mark = len(walk.out)
    ordinal = walk.next_ordinal()
    name = _first_name(walk, node)
    path = scope.prefix + name if name else scope.path
    owner = scope.definition if scope.level == "class" else -1
    record = None
    if function is not None and name:
        kind = "method" if scope.level == "class" else "function"
        record = DefinitionRecord(
            "lambda", name, path, function, scope.definition, owner, scope.condition, ordinal
        )
        walk.outline.definitions.append(record)
    assigned = None
    if scope.level != "function":
        assigned = AssignmentRecord(
            node, Place("", "", b"", 0, 0, 0, 0), scope.path, owner, scope.condition, ordinal
        )
        walk.outline.assignments.append(assigned)
    _write_assignment(walk, node, depth)
    digest = walk.fold(mark)
    if assigned is not None:
        assigned.place = _place(walk, "assignment", path, digest, statement, statement)
    if record is not None:
        record.place = _place(walk, kind, path, digest, statement, statement)
        record.header = record.place if assigned is None else assigned.place


def _write_assignment(walk: Walk, node: Node, depth: int) -> None:
    """The generic form; notes the attributes that a method sets on its own object."""
    children = node.children
    scope = walk.scope
    if scope.self_name and scope.owner >= 0:
        _note_attributes(walk, children[0], scope)
    walk.out.append(_OPEN[node.kind_id])
    if children[0].start_point.row != children[0].end_point.row and _runs_on(walk, children[0]):
        walk.out.append(b"=newline")
    walk.emit(children, depth + 1)
    walk.out.append(CLOSE)


def _runs_on(walk: Walk, target: Node) -> bool:
    """Whether the grammar took two statements for one: after `a,` a line break does not end it for the grammar.

    `a,` and `b = f()` on two lines are a tuple and an assignment, other than `a, b = f()`.
    """
    if target.kind_id not in _BARE_LISTS:
        return False
    return any(
        b"\n" in walk.source[one.end_byte : other.start_byte] for one, other in pairwise(target.children)
    )


def _nested_assignment(walk: Walk, node: Node, depth: int) -> None:
    _write_assignment(walk, node, depth)


def _note_attributes(walk: Walk, target: Node, scope: Scope) -> None:
    if target.kind_id == g.ATTRIBUTE:
        held = target.children
        if held[0].kind_id == g.IDENTIFIER and walk.text(held[0]) == scope.self_name:
            names = walk.outline.definitions[scope.owner].self_attributes
            names.append(walk.text(held[-1]).decode("utf-8"))
    elif target.kind_id in _TARGET_LISTS:
        for child in target.named_children:
            _note_attributes(walk, child, scope)


def _first_name(walk: Walk, node: Node) -> str:
    """The first simple name that an assignment or type alias binds."""
    pending = [node.children[0] if node.kind_id != g.TYPE_ALIAS else node.children[1]]
    while pending:
        target = pending.pop()
        if target.kind_id == g.IDENTIFIER:
            return walk.text(target).decode("utf-8")
        if target.kind_id in _NAME_HOLDERS:
            pending.extend(reversed(target.named_children))
    return ""


def _lambda_of(assignment: Node) -> Node | None:
    """The lambda that a single simple name is bound to."""
    children = assignment.children
    value = children[-1]
    if value.kind_id not in _MAYBE_LAMBDA or children[0].kind_id not in _SINGLE_TARGETS:
        return None
    while value.kind_id == g.PARENTHESIZED:
        value = value.named_children[-1]
    return value if value.kind_id in g.LAMBDAS else None


def error(walk: Walk, node: Node, depth: int) -> None:
    """A region that could not be parsed is its text; the statements in it that could keep their spans."""
    mark = len(walk.out)
    walk.emit(kept_inside(node), depth + 1)
    del walk.out[mark:]
    walk.out.append(b"(error")
    walk.out.append(text_item(walk.text(node)))
    walk.out.append(CLOSE)


_PLAIN_IMPORT = g.kind("import_statement")
_FUTURE_IMPORT = g.kind("future_import_statement")
_NAME_HOLDERS = _TARGET_LISTS | g.kinds("type", "generic_type")
_OPEN = {
    g.ASSIGNMENT: b"(assignment",
    g.AUGMENTED_ASSIGNMENT: b"(augmented_assignment",
    g.TYPE_ALIAS: b"(type_alias_statement",
}

FORMS: dict[str, Handler] = {
    "decorated_definition": _decorated,
    "function_definition": _definition,
    "class_definition": _definition,
    "import_statement": _import,
    "import_from_statement": _import,
    "future_import_statement": _import,
    "expression_statement": _expression_statement,
    "assignment": _nested_assignment,
    "augmented_assignment": _nested_assignment,
    "type_alias_statement": _type_alias,
}
