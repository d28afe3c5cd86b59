from __future__ import annotations

import pytest

from kb.structure.decode import Limits
from kb.structure.reader import read_blob


def _read(data: bytes, limits: Limits | None = None):
    return read_blob("oid", data, "python", (), limits or Limits())


def _ids(data: bytes):
    return [(item.span.kind, item.span.symbol_path, item.span.span_id) for item in _read(data).occurrences]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = '\xe9'\n", "not_utf8"),
        (b"\xff\xfex\0=\0001\0", "nul_bytes"),
        (b"a = 1\0\n", "nul_bytes"),
        (b"# coding: rot13\nk = 1\n", "undecodable"),
        (b"# coding: idna\nx = 1\n", "unknown_encoding"),
        (b"# coding: no-such-codec\nx = 1\n", "unknown_encoding"),
        (b"# coding: cp1252\nx = '\x81'\n", "undecodable"),
        (b"# coding: ascii\nx = '\xe9'\n", "not_utf8"),
    ],
)
def test_a_blob_that_is_no_text_is_one_gap_and_nothing_else(data, reason):
    blob = _read(data)
    assert [(gap.reason, gap.start_line, gap.end_line) for gap in blob.gaps] == [(reason, None, None)]
    assert (blob.occurrences, blob.facts) == ((), ())
    assert "\n" not in blob.gaps[0].detail


def test_a_blob_over_the_limit_is_a_gap_that_says_so():
    assert _read(b"x = 1\n", Limits(max_bytes=5)).gaps[0] == (
        "too_large",
        "6 bytes, the limit is 5",
        None,
        None,
    )
    assert _read(b"x = 1\n", Limits(max_bytes=6)).gaps == ()


def test_a_tree_over_the_limit_is_a_gap_that_says_so():
    gap = _read(b"x = [" + b"1, " * 100 + b"]", Limits(max_nodes=100)).gaps[0]
    assert (gap.reason, gap.start_line) == ("too_large", None)


def test_a_declared_encoding_is_read_and_gives_the_ids_of_the_same_code_in_utf8():
    latin = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")
    assert _ids(latin) == _ids(
        "# -*- coding: latin-1 -*-\nname = 'é'\n".encode().replace(b"latin-1", b"utf-8")
    )


def test_a_declaration_on_the_third_line_or_behind_code_declares_nothing():
    assert _read(b"x = 1\n\n# coding: latin-1\ny = '\xe9'\n").gaps[0].reason == "not_utf8"
    assert _read(b"x = 1\n# coding: latin-1\ny = '\xe9'\n").gaps[0].reason == "not_utf8"


def test_a_byte_order_mark_changes_no_id_and_offsets_count_it():
    plain, marked = _read(b"x = 1\n"), _read(b"\xef\xbb\xbfx = 1\n")
    assert [item.span for item in plain.occurrences] == [item.span for item in marked.occurrences]
    assert [item.start_byte for item in marked.occurrences if item.span.kind == "assignment"] == [3]


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_ends_change_no_id_and_lines_are_counted_as_python_counts_them(end):
    source = b'"""Doc."""\nx = 1\n\n\ndef f():\n    """a\n    b"""\n    return """c\nd"""\n'
    other = source.replace(b"\n", end)
    assert _ids(source) == _ids(other)
    places = [(item.start_line, item.end_line) for item in _read(source).occurrences]
    assert places == [(item.start_line, item.end_line) for item in _read(other).occurrences]


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n\t\n", b"# only a comment", b"\x0c\n"])
def test_a_file_without_code_is_a_module_of_its_lines(data):
    (module,) = _read(data).occurrences
    assert (module.span.kind, module.start_line, module.end_line) == (
        "module",
        1,
        max(1, len(data.splitlines())),
    )


def test_no_text_of_a_fact_holds_nul_or_a_lone_surrogate():
    from kb.structure.facts import ModuleFacts, decode_payload

    facts = decode_payload(
        _read(rb'x = "\0", "\ud800", b"\0\xff", "\N{Bullet}"').facts[0].payload, ModuleFacts
    )
    values = [item.value for item in facts.assignments[0].value.items]
    assert values == ["\\x00", "\\ud800", "\\x00ÿ", "\\N{BULLET}"]
