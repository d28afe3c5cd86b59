from __future__ import annotations

import pytest

from kb.structure.reader import read_blob


def _spans(source: str, dialect: str = "python"):
    blob = read_blob("oid", source.encode(), dialect, ())
    assert blob.gaps == ()
    return blob.occurrences


def _table(source: str):
    return [(i.span.kind, i.span.symbol_path, i.n, i.start_line, i.end_line) for i in _spans(source)]


SOURCE = """\
import os
@decorated
# a comment
async def outer(a,
                b=1) -> int:
    import os
    def inner(): pass
    short = lambda x: x
    class Local:
        def m(self): pass

class Order(Base):
    total: int = 0
    key = lambda self: 1
    @overload
    def get(self): ...
    @overload
    def get(self): ...
    if True:
        def maybe(self): pass
X, Y = 1, 2
app.debug = True
"""

EXPECTED = [
    ("module", "", 0, 1, 22),
    ("import", "", 0, 1, 1),
    ("function", "outer", 0, 2, 10),
    ("function_header", "outer", 0, 2, 5),
    ("import", "outer", 0, 6, 6),
    ("function", "outer.<locals>.inner", 0, 7, 7),
    ("function_header", "outer.<locals>.inner", 0, 7, 7),
    ("function", "outer.<locals>.short", 0, 8, 8),
    ("class", "outer.<locals>.Local", 0, 9, 10),
    ("class_header", "outer.<locals>.Local", 0, 9, 9),
    ("method", "outer.<locals>.Local.m", 0, 10, 10),
    ("function_header", "outer.<locals>.Local.m", 0, 10, 10),
    ("class", "Order", 0, 12, 20),
    ("class_header", "Order", 0, 12, 12),
    ("assignment", "Order.total", 0, 13, 13),
    ("assignment", "Order.key", 0, 14, 14),
    ("method", "Order.key", 0, 14, 14),
    ("method", "Order.get", 0, 15, 16),
    ("function_header", "Order.get", 0, 15, 16),
    ("method", "Order.get", 1, 17, 18),
    ("function_header", "Order.get", 1, 17, 18),
    ("method", "Order.maybe", 0, 20, 20),
    ("function_header", "Order.maybe", 0, 20, 20),
    ("assignment", "X", 0, 21, 21),
    ("assignment", "", 0, 22, 22),
]


def test_every_kind_of_definition_has_its_span_path_and_lines():
    assert _table(SOURCE) == EXPECTED


def test_occurrences_are_unique_by_span_and_number_and_ordered_by_place():
    spans = _spans(SOURCE + SOURCE)
    assert len({(item.span.span_id, item.n) for item in spans}) == len(spans)
    places = [(item.start_byte, -item.end_byte) for item in spans]
    assert places == sorted(places)


def test_equal_statements_are_one_span_counted_by_place():
    twice = [item for item in _spans("import os\nx = 1\nimport os\n") if item.span.kind == "import"]
    assert len({item.span.span_id for item in twice}) == 1
    assert [(item.n, item.start_line) for item in twice] == [(0, 1), (1, 3)]


def test_a_stub_and_its_source_share_the_spans_of_equal_code():
    source = "def f(a: int) -> int: ...\n"
    assert [i.span for i in _spans(source)] == [i.span for i in _spans(source, "python-stub")]


def _id(source: str, kind: str, path: str) -> bytes:
    (found,) = [i.span.span_id for i in _spans(source) if (i.span.kind, i.span.symbol_path) == (kind, path)]
    return found


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("class A(B):\n x = 1\n", "class A(B):\n x = 2\n", {"class"}),
        ("class A(B):\n x = 1\n", "class A(C):\n x = 1\n", {"class", "class_header"}),
        ("@d\nclass A(B):\n x = 1\n", "@e\nclass A(B):\n x = 1\n", {"class", "class_header"}),
    ],
)
def test_a_class_header_changes_with_decorators_name_and_bases_alone(before, after, changes):
    assert {k for k in ("class", "class_header") if _id(before, k, "A") != _id(after, k, "A")} == changes


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        ("@d\ndef f(a: int = 1) -> str:\n return b\n", {"function"}),
        ("@d\ndef f(a: int = 2) -> str:\n return a\n", {"function", "function_header"}),
        ("@d\ndef f(a: int = 1) -> int:\n return a\n", {"function", "function_header"}),
        ("@e\ndef f(a: int = 1) -> str:\n return a\n", {"function", "function_header"}),
        ("@d\nasync def f(a: int = 1) -> str:\n return a\n", {"function", "function_header"}),
        ("@d\ndef f(a: int = 1) -> str:\n '''Doc.'''\n return a\n", set()),
    ],
)
def test_a_function_header_changes_with_the_signature_alone(after, changes):
    before = "@d\ndef f(a: int = 1) -> str:\n return a\n"
    kinds = ("function", "function_header")
    assert {kind for kind in kinds if _id(before, kind, "f") != _id(after, kind, "f")} == changes


def test_a_nested_change_reaches_the_containers_and_not_the_siblings():
    before = "class A:\n def f(self): return 1\n def g(self): return 2\n"
    after = before.replace("return 1", "return 3")
    same = {i.span.symbol_path for i in _spans(before)} & {
        i.span.symbol_path for i in _spans(before) if i.span in {j.span for j in _spans(after)}
    }
    assert "A.g" in same
    assert _id(before, "class", "A") != _id(after, "class", "A")
    assert _id(before, "method", "A.f") != _id(after, "method", "A.f")
