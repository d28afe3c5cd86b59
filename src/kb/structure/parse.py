"""One parsed blob, as the readers of facts see it (`kb.extract.api.ParseView`)."""

from __future__ import annotations

from collections.abc import Sequence

import tree_sitter

from kb.identity.spans import span_id
from kb.model.spans import BlobGap, LocatedSpan, Span, SpanKey
from kb.structure.cited import CitedNodes, Scopes
from kb.structure.decode import Limits
from kb.structure.dialects import language_of
from kb.structure.facts import Expr, ModuleFacts, SpanRef
from kb.structure.python.errors import syntax_gaps
from kb.structure.python.expressions import Expressions
from kb.structure.python.module_facts import ModuleReader
from kb.structure.python.normalise import read_module
from kb.structure.python.outline import Outline
from kb.structure.spans import SpanTable, by_place, locate
from kb.structure.text import TextLines

Node = tree_sitter.Node


class Parse:
    """A blob's tree, spans and facts while it is being read; nothing of it outlives `read_blob`."""

    def __init__(self, source: bytes, dialect: str, root: Node | None, limits: Limits) -> None:
        self.source = source
        self.dialect = dialect
        self.gaps: list[BlobGap] = []
        self.module = ModuleFacts()
        self.module_table = SpanTable()
        self.table = self.module_table
        self._limits = limits
        self._language = language_of(dialect)
        self._outline = Outline()
        self._located: dict[SpanKey, LocatedSpan] = {}
        self._lines: TextLines | None = None
        self._scopes = Scopes(self._outline)
        self._root = root
        if root is not None:
            self._read_tree(root)

    def _read_tree(self, root: Node) -> None:
        if root.has_error:
            self.gaps += syntax_gaps(root)
        self._outline = outline = read_module(self.source, root, self._limits.max_depth)
        self.gaps += [
            BlobGap("too_deep", f"nested deeper than {self._limits.max_depth} levels", start, end)
            for start, end in sorted(set(outline.too_deep))
        ]
        for located in locate(self._language, outline.places):
            self._located[SpanKey(located.span.span_id, located.n)] = located
        self._scopes = Scopes(outline)
        self._nodes = CitedNodes(
            self.source, root, self._language, outline, self._scopes, self._limits.max_depth
        )
        self._expressions = Expressions(self.source)
        reader = ModuleReader(self.source, root, outline, self.table.refer, self.cite, self.scope_of)
        self.module = reader.read()

    @property
    def root(self) -> Node:
        """Root of the tree.

        Raises:
            ValueError: the dialect has no grammar.
        """
        if self._root is None:
            raise ValueError(f"dialect {self.dialect} has no grammar; read `source` and cite lines")
        return self._root

    @property
    def calls(self) -> Sequence[Node]:
        """Every `call` node in source order."""
        return self._outline.calls

    @property
    def definition_ranges(self) -> Sequence[tuple[int, int, str]]:
        """(start byte, end byte, symbol path) of every definition, decorators included, by (start, -end)."""
        return self._scopes.ranges if self._root is not None else ()

    @property
    def classes(self) -> Sequence[tuple[str, Node]]:
        """(symbol path, `class_definition`) of every class, in source order."""
        return [(one.symbol_path, one.node) for one in self._outline.definitions if one.kind == "class"]

    @property
    def occurrences(self) -> tuple[LocatedSpan, ...]:
        """Every span of the blob, cited ones included, by place."""
        return tuple(sorted(self._located.values(), key=by_place))

    def begin_row(self) -> SpanTable:
        """Starts the span table of another fact row; references made from now on index it."""
        self.table = SpanTable()
        return self.table

    def scope_of(self, node: Node) -> str:
        """symbol_path of the innermost definition that holds the node; "" at module level.

        A definition holds its decorators and its defaults; a definition's own node is inside it.
        """
        return self._scopes.path_of(node)

    def expr(self, node: Node) -> Expr:
        """The node as an `Expr`."""
        return self._expressions.build(node)

    def cite(self, node: Node) -> SpanRef:
        """A reference to the node as a span, adding it to the blob's spans where it is not one yet."""
        cited = self._nodes.span_of(node)
        return self.table.refer(cited if isinstance(cited, SpanKey) else self.add(cited))

    def cite_lines(self, start_line: int, end_line: int, kind: str, symbol_path: str) -> SpanRef:
        """A reference to whole lines (1-based, inclusive) as a text span.

        Blank lines at the ends are left out. Raises ValueError where no line holds text.
        """
        if self._lines is None:
            self._lines = TextLines(self.source)
        place = self._lines.place(start_line, end_line)
        identity = span_id(self._language, kind, symbol_path, place.fingerprint)
        span = Span(identity, self._language, kind, symbol_path, place.fingerprint)
        return self.table.refer(self.add(LocatedSpan(span, *place[1:])))

    def module_span(self, ref: SpanRef) -> SpanRef:
        """A reference of `module`'s span table, carried over into the table of the current row."""
        return self.table.refer(self.module_table.keys[ref])

    def add(self, located: LocatedSpan) -> SpanKey:
        """Keeps a span that is cited."""
        key = SpanKey(located.span.span_id, located.n)
        self._located.setdefault(key, located)
        return key
