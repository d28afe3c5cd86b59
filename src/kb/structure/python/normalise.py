"""The fingerprints of a Python file, and its outline, in one walk over the tree.

docs/identity.md has the encoding and the closed list of what is dropped; every change here, in the
`*_forms` modules or in `literals` that alters a fingerprint bumps `NORMALIZATION_VERSION`.
"""

from __future__ import annotations

import hashlib

from kb.structure.python import definition_forms, expression_forms, literal_forms, statement_forms
from kb.structure.python import grammar as g
from kb.structure.python.outline import Outline
from kb.structure.python.walk import GENERIC, Forms, Handler, Node, Walk

# Tokens that their parent implies. Every other anonymous token carries meaning and is kept.
_IMPLIED = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    ";",
    "=",
    ":=",
    "->",
    "\\",
    "def",
    "class",
    "if",
    "else",
    "elif",
    "for",
    "while",
    "with",
    "import",
    "as",
    "return",
    "pass",
    "try",
    "except",
    "finally",
    "lambda",
    "global",
    "nonlocal",
    "assert",
    "del",
    "raise",
    "break",
    "continue",
    "match",
    "case",
    "yield",
    "await",
    "exec",
    "print",
    "type",
    "__future__",
]

# Spellings of one thing that the grammar gives several types.
_SAME = {
    "expression_list": "tuple",
    "pattern_list": "tuple",
    "tuple_pattern": "tuple",
    "generic_type": "subscript",
    "union_type": "binary_operator",
    "member_type": "attribute",
    "splat_type": "list_splat",
}
_CONSTANT = {
    "true": b"=True",
    "false": b"=False",
    "none": b"=None",
    "ellipsis": b"=...",
    "pass_statement": b"=pass",
    "break_statement": b"=break",
    "continue_statement": b"=continue",
    "wildcard_import": b"=import *",
    "keyword_separator": b"=keyword only",
    "positional_separator": b"=positional only",
}


def read_module(source: bytes, root: Node, max_depth: int) -> Outline:
    """The outline of a file, every place with its fingerprint."""
    walk = Walk(source, max_depth, FORMS)
    try:
        definition_forms.module(walk, root)
    finally:
        walk.close()
    return walk.outline


def fingerprint(source: bytes, node: Node, max_depth: int) -> bytes:
    """sha256 (32 bytes) of one node's normal form."""
    walk = Walk(source, max_depth, FORMS)
    try:
        walk.emit((node,), 0)
    finally:
        walk.close()
    return hashlib.sha256(b"\n".join(walk.out)).digest()


def _forms() -> Forms:
    handlers: dict[str, Handler] = {
        **literal_forms.FORMS,
        **expression_forms.FORMS,
        **statement_forms.FORMS,
        **definition_forms.FORMS,
    }
    actions: list[bytes | Handler | None] = [None] * (g.ERROR_KIND + 1)
    actions[g.ERROR_KIND] = definition_forms.error
    opens: dict[int, bytes] = {}
    for kind in range(1, g.LANGUAGE.node_kind_count):
        name = g.LANGUAGE.node_kind_for_id(kind)
        if name is None or not g.LANGUAGE.node_kind_is_visible(kind):
            continue
        if not g.LANGUAGE.node_kind_is_named(kind):
            actions[kind] = None if name in _IMPLIED else b"=" + name.encode()
        elif kind not in g.EXTRAS:
            actions[kind] = handlers.get(name) or _CONSTANT.get(name, GENERIC)
            opens[kind] = b"(" + _SAME.get(name, name).encode()
    return Forms(actions, opens)


FORMS = _forms()
