"""The calls of a blob by the last name of their callee: made once, shared by the extractors that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import tree_sitter

from kb.extract.api import ParseView

_last: tuple[ParseView, dict[bytes, list[tree_sitter.Node]]] | None = None


def by_callee(parse: ParseView) -> Mapping[bytes, list[tree_sitter.Node]]:
    """Call nodes in source order under the last name of what they call (`delay` of `jobs.mail.delay()`)."""
    global _last  # noqa: PLW0603  # a cache of one: extractors read the same blob one after the other
    if _last is None or _last[0] is not parse:
        index: dict[bytes, list[tree_sitter.Node]] = {}
        source = parse.source
        for node in parse.calls:
            callee = node.child(0)
            end = callee.end_byte
            start = max(callee.start_byte, source.rfind(b".", callee.start_byte, end) + 1)
            index.setdefault(source[start:end].strip(), []).append(node)
        _last = (parse, index)
    return _last[1]


def named(parse: ParseView, names: AbstractSet[bytes]) -> Iterator[tree_sitter.Node]:
    """The calls whose callee's last name is one of `names`, in source order."""
    index = by_callee(parse)
    found = [node for name in names & index.keys() for node in index[name]]
    yield from sorted(found, key=lambda node: (node.start_byte, -node.end_byte))
