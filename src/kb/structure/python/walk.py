"""The walk over a syntax tree that writes the normal form as a flat stream of items.

An item opens a node, closes one, or is a token, a name or a literal's value; no item holds a line feed,
and the first byte of an item says which it is, so no two trees write one stream (docs/identity.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import tree_sitter

from kb.structure.python import grammar as g
from kb.structure.python.outline import Outline, Scope

Node: TypeAlias = tree_sitter.Node
Handler: TypeAlias = "Callable[[Walk, Node, int], None]"

CLOSE = b")"
TUPLE = b"(tuple"
GENERIC = b"generic"
"""The form of a node that is opened, walked and closed."""

_BLANKS = re.compile(rb"\s+")


class Forms(NamedTuple):
    """What each kind of node becomes, by kind id."""

    actions: list[bytes | Handler | None]
    """None: nothing. `GENERIC`. Other bytes: that item. Otherwise what writes it."""
    opens: dict[int, bytes]


def str_item(value: bytes) -> bytes:
    """A text value as one item; an item never holds a line feed."""
    if b"\n" in value:
        return b"$" + value.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return b'"' + value


def bytes_item(value: bytes) -> bytes:
    """A bytes value as one item."""
    if b"\n" in value:
        return b"%" + value.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return b"'" + value


def text_item(text: bytes) -> bytes:
    """Source text that is compared as it stands, but for blanks."""
    return str_item(_BLANKS.sub(b" ", text))


class Walk:
    """The state of one walk; `outline` is what it found."""

    def __init__(self, source: bytes, max_depth: int, forms: Forms) -> None:
        self.source = source
        self.out: list[bytes] = []
        self.outline = Outline()
        self.scope = Scope()
        self.ordinal = 0
        self.generator = False
        """A `yield` was met in the function being walked."""
        self.emit, self._forget = _emitter(self, max_depth, forms)
        """Writes nodes, `depth` levels down. It refers back to the walk: call `close` when done."""

    def text(self, node: Node) -> bytes:
        """The node as it is written."""
        return self.source[node.start_byte : node.end_byte]

    def close(self) -> None:
        """Ends the walk, so that its nodes are freed at once and not by the garbage collector."""
        self._forget()
        del self.emit, self._forget

    def next_ordinal(self) -> int:
        """The place of the next statement that binds names."""
        self.ordinal += 1
        return self.ordinal - 1

    def fold(self, mark: int) -> bytes:
        """The digest of what was written since `mark`, in place of which it is left in the stream."""
        out = self.out
        digest = hashlib.sha256(b"\n".join(out[mark:])).digest()
        del out[mark:]
        out.append(b"#" + digest)
        return digest

    def too_deep(self, nodes: Sequence[Node]) -> None:
        """Stands for syntax below the depth limit: its text with blanks folded, and a gap."""
        if nodes:
            region = self.source[nodes[0].start_byte : nodes[-1].end_byte]
            self.out.append(b"(deep")
            self.out.append(text_item(region))
            self.out.append(CLOSE)
            lines = (nodes[0].start_point.row + 1, nodes[-1].end_point.row + 1)
            self.outline.too_deep.append(lines)


def _emitter(
    walk: Walk, max_depth: int, forms: Forms
) -> tuple[Callable[[Iterable[Node], int], None], Callable[[], None]]:
    """The loop that all time goes to, with everything it needs in local variables; and what unties it."""
    source, append, actions, opens = walk.source, walk.out.append, forms.actions, forms.opens
    identifier, generic = g.IDENTIFIER, GENERIC

    def emit(nodes: Iterable[Node], depth: int) -> None:
        if depth > max_depth:
            walk.too_deep(list(nodes))
            return
        for node in nodes:
            kind = node.kind_id
            if kind == identifier:
                append(source[node.start_byte : node.end_byte])
                continue
            action = actions[kind]
            if action is None:
                continue
            if action is generic:
                append(opens[kind])
                emit(node.children, depth + 1)
                append(CLOSE)
            elif isinstance(action, bytes):
                append(action)
            else:
                action(walk, node, depth)

    def forget() -> None:
        nonlocal emit
        del emit

    return emit, forget
