"""The scanner's values equal tomllib's: only then are its lines worth citing."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.extract.dependencies.toml_lines import TomlScanner

DOCUMENTS = [
    'a = "x" # c\n[b.c]\nd = [\n  "1", # one\n  \'2\',\n]\n"q.r".s = """\nline\n  two"""\n',
    "[[p]]\nn = 'a'\n[p.q]\nv = '1'\n[[p]]\nn = 'b'\nw = { x = 'y', z = [ { k = 'v' } ] }\n",
    'k = """a\\\n   b"""\ne = "\\u00e9\\t\\""\nl = \'\'\'it\'s\'\'\'\n',
    "i = 1\nf = 1.5\nd = 2020-01-01 10:00:00\nb = true\ns = 'after'\narr = [1, [2, 'n'], []]\n",
    'a.b.c = "d"\na.b.e = "f"\n[t]\n"" = "empty key"\n',
    "x = '1'\r\n[y]\r\nz = '''\r\na\r\nb'''\r\n",
]


def strings(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], str]:
    if isinstance(value, str):
        return {path: value}
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = {}
    for key, item in entries:
        found.update(strings(item, (*path, key)))
    return found


def scanned(text: str) -> dict[tuple[str | int, ...], str]:
    return {path: place.value for path, place in TomlScanner(text).scan().places.items() if place.is_string}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_every_string_is_found_with_the_value_that_tomllib_gives(text):
    assert scanned(text) == strings(tomllib.loads(text))


def test_this_projects_own_files_are_scanned_whole():
    root = Path(__file__).parents[3]
    for name in ("pyproject.toml", "uv.lock"):
        text = (root / name).read_text()
        assert scanned(text) == strings(tomllib.loads(text))


def test_lines_are_those_that_hold_the_value():
    places = TomlScanner(DOCUMENTS[0]).scan().places
    assert {path: (place.start, place.end) for path, place in places.items()} == {
        ("a",): (1, 1),
        ("b", "c", "d", 0): (4, 4),
        ("b", "c", "d", 1): (5, 5),
        ("b", "c", "q.r", "s"): (7, 9),
    }


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8), max_size=6)
)
def test_any_array_of_strings_is_read_as_tomllib_reads_it(values):
    quoted = ", ".join('"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in values)
    text = f"[t]\nx = [{quoted}]\n"
    assert scanned(text) == strings(tomllib.loads(text))


@given(st.text(alphabet="[]{}=\"'\\#.,\n ab1", max_size=40))
def test_no_text_makes_the_scanner_fail(text):
    TomlScanner(text).scan()
