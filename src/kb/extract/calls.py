"""The calls of a blob by the last name of their callee: made once, shared by the extractors that ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from weakref import WeakKeyDictionary

import tree_sitter

from kb.extract.api import ParseView

_indexes: WeakKeyDictionary[ParseView, dict[bytes, list[tree_sitter.Node]]] = WeakKeyDictionary()


_PLAIN = re.compile(rb"(?:\w+\.)*(\w+)\(")


def _plain(source: bytes, start: int) -> bytes | None:
    """The last name of a callee that is a dotted name, read from the text: most are."""
    match = _PLAIN.match(source, start)
    return match.group(1) if match is not None else None


def _callee(source: bytes, node: tree_sitter.Node) -> bytes:
    callee = node.child(0)
    end = callee.end_byte
    return source[max(callee.start_byte, source.rfind(b".", callee.start_byte, end) + 1) : end].strip()


def by_callee(parse: ParseView) -> Mapping[bytes, list[tree_sitter.Node]]:
    """Call nodes in source order under the last name of what they call (`delay` of `jobs.mail.delay()`)."""
    index = _indexes.get(parse)
    if index is None:
        index = _indexes[parse] = {}
        source = parse.source
        outer: tree_sitter.Node | None = None
        for node in parse.calls:
            # Calls that start together are a chain (`a.b(c).d(e)`), the outermost first: only the last
            # of them has a callee whose text runs up to its own parenthesis.
            if outer is not None:
                name = _plain(source, outer.start_byte) if outer.start_byte != node.start_byte else None
                index.setdefault(name or _callee(source, outer), []).append(outer)
            outer = node
        if outer is not None:
            index.setdefault(_callee(source, outer), []).append(outer)
    return index


def named(parse: ParseView, names: AbstractSet[bytes]) -> Iterator[tree_sitter.Node]:
    """The calls whose callee's last name is one of `names`, in source order."""
    index = by_callee(parse)
    found = [node for name in names & index.keys() for node in index[name]]
    yield from sorted(found, key=lambda node: (node.start_byte, -node.end_byte))
