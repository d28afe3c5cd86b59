"""Spans of syntax nodes that a fact cites, and the scope that a node is in."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from functools import lru_cache
from typing import TypeAlias

import tree_sitter

from kb.identity.spans import span_id
from kb.model.spans import LocatedSpan, Span, SpanKey
from kb.structure.python import grammar as g
from kb.structure.python.normalise import fingerprint
from kb.structure.python.outline import Outline

Node: TypeAlias = tree_sitter.Node

_DEFINITION_SPANS = ("class", "function", "method")
_STRUCTURAL: dict[int, tuple[str, ...]] = {
    g.MODULE: ("module",),
    g.CLASS: _DEFINITION_SPANS,
    g.FUNCTION: _DEFINITION_SPANS,
    g.DECORATED: _DEFINITION_SPANS,
    g.ASSIGNMENT: ("assignment",),
    g.AUGMENTED_ASSIGNMENT: ("assignment",),
    g.EXPRESSION_STATEMENT: ("assignment",),
    g.TYPE_ALIAS: ("assignment",),
} | dict.fromkeys(g.IMPORTS, ("import",))
"""The kinds of span that a node may be by itself."""


@lru_cache(maxsize=256)
def _query(pattern: str) -> tree_sitter.Query:
    return tree_sitter.Query(g.LANGUAGE, pattern)


class Scopes:
    """The innermost definition at a place."""

    def __init__(self, outline: Outline) -> None:
        ranges = []
        for record in outline.definitions:
            assert record.place is not None
            ranges.append((record.place.start_byte, record.place.end_byte, record.symbol_path))
        ranges.sort(key=lambda item: (item[0], -item[1]))
        self.ranges = ranges
        self._starts = [start for start, _, _ in ranges]
        self._outer: list[int] = []
        """Index of the range that holds each range; -1 for none."""
        open_ranges: list[int] = []
        for at, start in enumerate(self._starts):
            while open_ranges and ranges[open_ranges[-1]][1] <= start:
                open_ranges.pop()
            self._outer.append(open_ranges[-1] if open_ranges else -1)
            open_ranges.append(at)

    def path_of(self, node: Node) -> str:
        """symbol_path of the innermost definition that holds the node; "" for none."""
        end = node.end_byte
        at = bisect_right(self._starts, node.start_byte) - 1
        while at >= 0 and self.ranges[at][1] < end:
            at = self._outer[at]
        return self.ranges[at][2] if at >= 0 else ""

    def ranges_of(self, path: str) -> list[tuple[int, int]]:
        """Start and end of every definition of that symbol_path, in source order."""
        return [(start, end) for start, end, name in self.ranges if name == path]


class CitedNodes:
    """Spans of nodes: the one that every parse has where there is one, else one of kind `node:<type>`.

    n of the latter counts equal nodes of the type within the same scope, whether cited or not, so that
    it is a function of the blob alone.
    """

    def __init__(
        self, source: bytes, root: Node, language: str, outline: Outline, scopes: Scopes, max_depth: int
    ) -> None:
        self._source = source
        self._root = root
        self._language = language
        self._outline = outline
        self._scopes = scopes
        self._max_depth = max_depth
        self._structural: dict[tuple[int, int], list[tuple[str, SpanKey]]] = {}
        self._groups: dict[tuple[int, str | None], dict[tuple[str, bytes], list[Node]]] = {}
        self._located: dict[int, LocatedSpan] = {}

    def span_of(self, node: Node) -> SpanKey | LocatedSpan:
        """The key of a span that the blob has anyway, or the span that the node is when cited."""
        structural = self._structural_key(node)
        if structural is not None:
            return structural
        if node.id not in self._located:
            self._locate_equals(node)
        return self._located[node.id]

    def _structural_key(self, node: Node) -> SpanKey | None:
        names = _STRUCTURAL.get(node.kind_id)
        if names is None:
            return None
        if node.kind_id == g.MODULE and self._outline.module is not None:
            return self._outline.module.key
        if not self._structural:
            for place in self._outline.places:
                self._structural.setdefault((place.start_byte, place.end_byte), []).append(
                    (place.kind, place.key)
                )
        parent = node.parent
        if parent is not None and parent.kind_id == g.DECORATED:
            node = parent
        for name, key in self._structural.get((node.start_byte, node.end_byte), ()):
            if name in names:
                return key
        return None

    def _locate_equals(self, node: Node) -> None:
        """Locates the node and all that may equal it: same type, same scope, same callee."""
        scope = self._scopes.path_of(node)
        group = self._groups_of(node, scope).get((scope, self._discriminator(node)), [node])
        counted: dict[bytes, int] = defaultdict(int)
        kind = f"node:{node.type}"
        for other in group:
            digest = fingerprint(self._source, other, self._max_depth)
            span = Span(span_id(self._language, kind, scope, digest), self._language, kind, scope, digest)
            lines = (other.start_point.row + 1, other.end_point.row + 1)
            self._located[other.id] = LocatedSpan(
                span, counted[digest], other.start_byte, other.end_byte, *lines
            )
            counted[digest] += 1

    def _groups_of(self, node: Node, scope: str) -> dict[tuple[str, bytes], list[Node]]:
        """Nodes that may equal one of the scope: all calls of the file at once, others scope by scope."""
        known = self._knows_calls(node)
        groups = self._groups.get((node.kind_id, None if known else scope))
        if groups is None:
            groups = {}
            for other in self._outline.calls if known else self._all_like(node, scope):
                key = (self._scopes.path_of(other), self._discriminator(other))
                groups.setdefault(key, []).append(other)
            self._groups[node.kind_id, None if known else scope] = groups
        return groups

    def _knows_calls(self, node: Node) -> bool:
        return node.kind_id == g.CALL and not self._root.has_error and not self._outline.too_deep

    def _all_like(self, node: Node, scope: str) -> list[Node]:
        """Every node of the type that the scope may hold, in source order."""
        query = _query(f"({node.type}) @node" if node.is_named else f'"{node.type}" @node')
        found: dict[int, Node] = {}
        for start, end in self._scopes.ranges_of(scope) if scope else [(0, self._root.end_byte)]:
            cursor = tree_sitter.QueryCursor(query)
            cursor.set_byte_range(start, end)
            found.update((other.id, other) for other in cursor.captures(self._root).get("node", ()))
        return sorted(found.values(), key=lambda other: (other.start_byte, -other.end_byte))

    def _discriminator(self, node: Node) -> bytes:
        """Something cheap that equal nodes share: a call's last callee name."""
        if node.kind_id != g.CALL:
            return b""
        callee = node.children[0]
        while callee.kind_id == g.PARENTHESIZED and callee.named_children:
            callee = callee.named_children[-1]
        if callee.kind_id == g.ATTRIBUTE:
            callee = callee.children[-1]
        if callee.kind_id != g.IDENTIFIER:
            return b""
        return self._source[callee.start_byte : callee.end_byte]
