"""The Python grammar: one parser per process, and its node kinds by name.

Nodes are told apart by `kind_id`, an integer, because reading `type` builds a string each time.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import tree_sitter
import tree_sitter_python

LANGUAGE: Final = tree_sitter.Language(tree_sitter_python.language())

ERROR_KIND: Final = 65535
"""tree-sitter's own kind for a region it could not parse."""


@cache
def parser() -> tree_sitter.Parser:
    """The process's parser; it keeps no state between blobs."""
    return tree_sitter.Parser(LANGUAGE)


@cache
def kinds(*names: str) -> frozenset[int]:
    """Every kind id of the named node types (an aliased type has more than one).

    Raises:
        KeyError: the grammar has no such type.
    """
    found = {name: _IDS[name] for name in names}
    return frozenset(kind for ids in found.values() for kind in ids)


def kind(name: str) -> int:
    """The only kind id of a named node type.

    Raises:
        ValueError: the type has several.
    """
    (only,) = kinds(name)
    return only


def token(text: str) -> int:
    """The kind id of an anonymous token."""
    found = LANGUAGE.id_for_node_kind(text, False)
    if found is None:
        raise KeyError(text)
    return found


def _ids_by_name() -> dict[str, list[int]]:
    ids: dict[str, list[int]] = {}
    for number in range(1, LANGUAGE.node_kind_count):
        name = LANGUAGE.node_kind_for_id(number)
        if name and LANGUAGE.node_kind_is_named(number) and LANGUAGE.node_kind_is_visible(number):
            ids.setdefault(name, []).append(number)
    return ids


_IDS: Final = _ids_by_name()
KIND_NAMES: Final[dict[int, str]] = {number: name for name, ids in _IDS.items() for number in ids}

IDENTIFIER: Final = kind("identifier")
COMMENT: Final = kind("comment")
LINE_CONTINUATION: Final = kind("line_continuation")
STRING: Final = kind("string")
CONCATENATED_STRING: Final = kind("concatenated_string")
ATTRIBUTE: Final = kind("attribute")
CALL: Final = kind("call")
ASSIGNMENT: Final = kind("assignment")
AUGMENTED_ASSIGNMENT: Final = kind("augmented_assignment")
TYPE_ALIAS: Final = kind("type_alias_statement")
EXPRESSION_STATEMENT: Final = kind("expression_statement")
PARENTHESIZED: Final = kind("parenthesized_expression")
TYPE: Final = kind("type")
TYPE_PARAMETER: Final = kind("type_parameter")
TUPLE: Final = kind("tuple")
LIST_SPLAT: Final = kind("list_splat")
FUNCTION: Final = kind("function_definition")
CLASS: Final = kind("class_definition")
DECORATED: Final = kind("decorated_definition")
DECORATOR: Final = kind("decorator")
MODULE: Final = kind("module")
ARGUMENT_LIST: Final = kind("argument_list")
INTERPOLATION: Final = kind("interpolation")
FORMAT_SPECIFIER: Final = kind("format_specifier")
FORMAT_EXPRESSION: Final = kind("format_expression")
TYPE_CONVERSION: Final = kind("type_conversion")
STRING_CONTENT: Final = kind("string_content")
BLOCKS: Final = kinds("block")
LAMBDAS: Final = kinds("lambda")
TUPLE_PATTERNS: Final = kinds("tuple_pattern")
IMPORTS: Final = kinds("import_statement", "import_from_statement", "future_import_statement")
ELSE_CLAUSE: Final = kind("else_clause")
ELIF_CLAUSE: Final = kind("elif_clause")
EXCEPT_CLAUSE: Final = kind("except_clause")
FINALLY_CLAUSE: Final = kind("finally_clause")
COMMA: Final = token(",")
COLON: Final = token(":")
NAMED: Final = frozenset(number for number in KIND_NAMES if number not in (COMMENT, LINE_CONTINUATION)) | {
    ERROR_KIND
}
"""Kinds of the nodes that mean something by themselves."""
EXTRAS: Final = frozenset({COMMENT, LINE_CONTINUATION})
"""Nodes that may stand between any two others and mean nothing."""
