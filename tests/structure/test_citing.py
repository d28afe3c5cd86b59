from __future__ import annotations

import msgspec
import pytest

from kb.extract.api import FactOutput
from kb.structure.facts import decode_span_table
from kb.structure.parse import Parse
from kb.structure.reader import read_blob


class _Nothing(msgspec.Struct):
    cited: tuple[int, ...] = ()


class _Citer:
    """Cites the nodes of one type that `wanted` names by index."""

    id, version, dialects = "citer", 1, frozenset({"python", "requirements"})

    def __init__(self, kind: str, wanted: list[int]) -> None:
        self.kind, self.wanted = kind, wanted

    def facts(self, parse: Parse):
        found = []
        pending = [parse.root]
        while pending:
            node = pending.pop()
            if node.type == self.kind:
                found.append(node)
            pending.extend(reversed(node.children))
        cited = tuple(parse.cite(found[at]) for at in self.wanted)
        return FactOutput(_Nothing(cited), ("b", "a", "b"))


def _cited(source: str, kind: str, wanted: list[int]):
    blob = read_blob("oid", source.encode(), "python", (_Citer(kind, wanted),))
    (row,) = [row for row in blob.facts if row.source == "citer"]
    by_key = {(item.span.span_id, item.n): item for item in blob.occurrences}
    return [by_key[key] for key in decode_span_table(row.spans)], row, blob


CALLS = "f(1)\nf(1)\ng(f(1))\ndef h():\n    f( 1, )\n    f(2)\n"


def test_a_cited_node_is_a_span_of_its_type_in_its_scope():
    (span, local), _, _ = _cited(CALLS, "call", [0, 4])
    assert (span.span.kind, span.span.symbol_path, span.start_line) == ("node:call", "", 1)
    assert (local.span.kind, local.span.symbol_path, local.start_line) == ("node:call", "h", 5)
    assert span.span.fingerprint == local.span.fingerprint


@pytest.mark.parametrize("wanted", [[0, 1, 3], [3], [3, 1]])
def test_the_number_of_a_cited_node_does_not_depend_on_what_else_is_cited(wanted):
    expected = {0: (0, 1), 1: (1, 2), 3: (2, 3)}  # by index: n and line of the equal calls f(1)
    spans, _, _ = _cited(CALLS, "call", wanted)
    assert [(item.n, item.start_line) for item in spans] == [expected[at] for at in wanted]


def test_a_node_that_is_a_span_anyway_is_cited_as_that():
    source = "import os\n@d\ndef f(): pass\nclass A: pass\nx = 1\n"
    for kind, expected in {
        "import_statement": ("import", ""), "function_definition": ("function", "f"), "class_definition": ("class", "A"),
        "decorated_definition": ("function", "f"), "assignment": ("assignment", "x"), "module": ("module", ""),
        "expression_statement": ("assignment", "x"),
    }.items():  # fmt: skip
        (span,), _, blob = _cited(source, kind, [0])
        assert (span.span.kind, span.span.symbol_path) == expected
        assert len(blob.occurrences) == 7


def test_citing_twice_refers_to_one_entry_and_keys_are_sorted_and_unique():
    spans, row, _ = _cited(CALLS, "call", [0, 0])
    assert len(spans) == 1
    assert row.keys == ("a", "b")


def test_a_node_inside_a_broken_region_can_be_cited():
    source = "def f():\n    return g(1) + )\n\ng(1)\n"
    (first, second), _, blob = _cited(source, "call", [0, 1])
    assert blob.gaps
    assert first.start_line == 2
    assert second.start_line == 4


def test_a_reader_of_another_dialect_is_not_asked():
    blob = read_blob("oid", b"x = 1", "python-stub", (_Citer("call", [0]),))
    assert [row.source for row in blob.facts] == ["module"]


class _Lines:
    id, version, dialects = "lines", 1, frozenset({"python"})

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        self.ranges = ranges

    def facts(self, parse: Parse):
        return FactOutput(
            _Nothing(tuple(parse.cite_lines(a, b, "dependency", "main") for a, b in self.ranges))
        )


TEXT = b"# a  b\n\n#   a b\n# c\n# a\n# b\n# a b\n"


def _lines(ranges: list[tuple[int, int]]):
    blob = read_blob("oid", TEXT, "python", (_Lines(ranges),))
    return [item for item in blob.occurrences if item.span.kind == "dependency"]


def test_lines_of_equal_words_are_one_span_counted_by_place():
    spans = _lines([(1, 1), (3, 3), (7, 7)])
    assert len({item.span.span_id for item in spans}) == 1
    assert [(item.n, item.start_line, item.end_line) for item in spans] == [(0, 1, 1), (1, 3, 3), (2, 7, 7)]
    assert [(item.n, item.start_line) for item in _lines([(7, 7)])] == [(2, 7)]


def test_blank_lines_at_the_ends_are_left_out():
    (span,) = _lines([(2, 3)])
    assert (span.start_line, span.end_line, span.n) == (3, 3, 1)
    assert TEXT[span.start_byte : span.end_byte] == b"#   a b"


@pytest.mark.parametrize("lines", [(2, 2), (0, 1), (3, 2), (7, 8)])
def test_lines_that_are_blank_or_absent_cannot_be_cited(lines):
    from kb.structure.text import TextLines

    with pytest.raises(ValueError, match=r"lines"):
        TextLines(TEXT).place(*lines)
