from __future__ import annotations

import pickle
import sys

import pytest

from kb.errors import IntegrityError
from kb.structure.reader import read_blob

DEEP = 10_000
NESTED = {
    "parentheses": b"x = " + b"(" * DEEP + b"1" + b")" * DEEP,
    "lists": b"x = " + b"[" * DEEP + b"1" + b"]" * DEEP,
    "dictionaries": b"x = " + b"{1:" * DEEP + b"1" + b"}" * DEEP,
    "calls": b"x = " + b"f(" * DEEP + b")" * DEEP,
    "a chain of attributes": b"x = a" + b".b" * DEEP,
    "a chain of calls": b"x = a" + b".b()" * DEEP,
    "a sum": b"x = 1" + b" + 1" * DEEP,
    "negations": b"x = " + b"not " * DEEP + b"1",
    "signs": b"x = " + b"-" * DEEP + b"1",
    "lambdas": b"x = " + b"lambda: " * DEEP + b"1",
    "conditions": b"x = " + b"a if b else " * DEEP + b"c",
    "assignments": b"x = " * DEEP + b"1",
    "annotations": b"x: " + b"List[" * DEEP + b"int" + b"]" * DEEP,
    "context managers": b"with " + b"(" * DEEP + b"a" + b")" * DEEP + b": pass",
    "patterns": b"match x:\n case " + b"(" * DEEP + b"a" + b")" * DEEP + b": pass",
}


@pytest.mark.parametrize("name", NESTED)
def test_code_nested_ten_thousand_deep_keeps_the_rest_and_is_a_gap(name):
    limit = sys.getrecursionlimit()
    blob = read_blob("oid", b"def before(): pass\n" + NESTED[name] + b"\ndef after(): pass\n", "python", ())
    assert {"before", "after"} <= {item.span.symbol_path for item in blob.occurrences}
    assert {gap.reason for gap in blob.gaps} == {"too_deep"}
    assert {gap.start_line for gap in blob.gaps} <= {2, 3}
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "data", [b"(" * DEEP, b")" * DEEP, b"with " + b"(" * DEEP, b"f'" + b"{" * DEEP, b"'''" * 999]
)
def test_what_never_closes_is_a_gap(data):
    blob = read_blob("oid", data, "python", ())
    assert {gap.reason for gap in blob.gaps} <= {"syntax_error", "too_deep"}
    assert blob.gaps


def test_a_broken_statement_leaves_its_neighbours_their_spans_and_ids():
    whole = b"class A:\n    def f(self): ...\n    def g(self): pass\n\ndef h():\n    pass\n"
    broken = whole.replace(b"    def g", b"    x = (\n    def g")
    blob = read_blob("oid", broken, "python", ())
    assert [(gap.reason, gap.start_line, gap.end_line) for gap in blob.gaps] == [("syntax_error", 3, 3)]
    kept = {(item.span.symbol_path, item.span.kind): item.span.span_id for item in blob.occurrences}
    for item in read_blob("oid", whole, "python", ()).occurrences:
        name = (item.span.symbol_path, item.span.kind)
        assert name in kept
        if item.span.kind not in ("module", "class"):
            assert kept[name] == item.span.span_id


def test_a_definition_that_holds_an_error_keeps_its_span_with_the_region_as_text():
    def ids(body: bytes):
        blob = read_blob("oid", b"def f():\n    return 1 " + body + b"\n\ndef g(): pass\n", "python", ())
        assert [gap.reason for gap in blob.gaps] == ["syntax_error"]
        return {
            item.span.symbol_path: item.span.span_id
            for item in blob.occurrences
            if item.span.kind == "function"
        }

    assert set(ids(b"+ )")) == {"f", "g"}
    assert ids(b"+ )")["f"] != ids(b"- )")["f"]
    assert ids(b"+ )")["g"] == ids(b"- )")["g"]
    assert ids(b"+   )") == ids(b"+ )")


def test_a_definition_inside_a_region_is_kept_only_where_its_path_is_certain():
    source = b"class A(:\n    def inside(self): pass\n\ndef outside(): pass\n"
    blob = read_blob("oid", source, "python", ())
    assert blob.gaps
    paths = {item.span.symbol_path for item in blob.occurrences}
    assert "inside" not in paths
    assert "outside" in paths


class _Broken:
    id, version, dialects = "broken", 1, frozenset({"python"})

    def facts(self, parse):
        raise ValueError("no such thing")


def test_a_reader_that_fails_is_an_error_that_names_the_reader_and_the_blob():
    with pytest.raises(IntegrityError, match="broken failed on blob 4f1c: ValueError: no such thing"):
        read_blob("4f1c", b"x = 1", "python", (_Broken(),))


def test_a_parsed_blob_travels_between_processes():
    blob = read_blob("oid", b"import os\nx = 1\n", "python", ())
    assert pickle.loads(pickle.dumps(blob)) == blob
