"""Whatever bytes a manifest holds, reading it ends in facts or in a gap, never in an error."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.folders import by_key, linked
from kb.extract.registry import load_extractors
from kb.model.spans import ParsedBlob
from kb.structure.dialects import dialect_of
from kb.structure.reader import read_blob

VALID = {
    "pyproject.toml": (
        b"[project]\nname = 'shop'\ndynamic = ['version']\ndependencies = ['a>=1; python_version<\"4\"', 'b[x] @ https://h/b.whl']\n"
        b"scripts = { shop = 'shop.cli:main' }\n[project.optional-dependencies]\ndev = [\"c\\u00e9\"]\n"
        b"[dependency-groups]\ntest = ['t', { include-group = 'dev' }]\n"
        b"[tool.poetry.dependencies]\npython = '^3.11'\nd = { version = '1', extras = ['z'], optional = true }\n"
    ),
    "Pipfile": b"[packages]\na = '*'\nb = { git = 'https://h/b', ref = 'main' }\n[dev-packages]\n\"c.d\" = '==1'\n",
    "setup.cfg": b"[metadata]\nname = shop\n[options]\ninstall_requires =\n    a>=1\n    b\n[options.extras_require]\ndev = c\n",
    "requirements.txt": b"a==1 \\\n  --hash=sha256:00\n-r other.txt\n-e ./here#egg=b\nc @ git+https://h/c # why\n--index-url https://h\n",
    "uv.lock": b"version = 1\n[[package]]\nname = 'a'\nversion = '1'\ndependencies = [{ name = 'b' }]\n",
    "poetry.lock": b"[[package]]\nname = 'a'\nversion = '1'\n[package.dependencies]\nb = '*'\n",
    "Pipfile.lock": b'{\n    "default": {\n        "a": {\n            "version": "==1"\n        }\n    },\n    "develop": {}\n}\n',
    ".importlinter": b"[importlinter]\nroot_package = shop\n[importlinter:contract:1]\nname = n\ntype = layers\nlayers =\n  a\n  b\n",
}
KEYS = {
    "pyproject.toml": {
        "architecture": (),
        "dependencies": ("declares", "dist:a", "dist:b", "dist:d", "dist:t", "project:shop"),
    },
    "Pipfile": {"dependencies": ("declares", "dist:a", "dist:b", "dist:c-d", "part:c", "part:d")},
    "setup.cfg": {"dependencies": ("declares", "dist:a", "dist:b", "dist:c", "project:shop")},
    "requirements.txt": {"dependencies": ("declares", "dist:a", "dist:b", "dist:c", "includes:other.txt")},
    "uv.lock": {"dependencies": ("lock:a",)},
    "poetry.lock": {"dependencies": ("lock:a",)},
    "Pipfile.lock": {"dependencies": ("lock:a",)},
    ".importlinter": {"architecture": ()},
}
NOISE = (
    *rb"""[ ] { } ' " \ \u12 \x \U0011ffff = , . # -r @ ; [[ ]] 1e999 0x""".split(),
    *(b"", b'"""', b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc2\x85", b"9" * 5000),
)
_SPLIT = re.compile(rb"\w+|\s+|.", re.DOTALL)


def read(name: str, data: bytes) -> ParsedBlob:
    dialect = dialect_of(name)
    assert dialect is not None
    readers = [reader for reader in load_extractors() if dialect in reader.dialects]
    return read_blob("0" * 40, data, dialect, readers)


def unread(name: str, data: bytes) -> list[str]:
    """What the artifact of a manifest says that could not be read, nothing where there is no such artifact."""
    found = by_key(linked({name: data}, load_extractors()))
    entry = found.get(f"dependency:unread:{name}")
    return list(entry.draft.body["reasons"]) if entry is not None else []


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """The words of a manifest with some left out, repeated, swapped or replaced."""
    words = _SPLIT.findall(data)
    noise = st.sampled_from(NOISE)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1))
        words[at] = draw(st.one_of(noise, st.sampled_from(words)))
    return b"".join(words)


@pytest.mark.parametrize("name", VALID)
@settings(deadline=None, max_examples=60)
@given(chosen=st.data())
def test_a_manifest_that_is_nearly_right_never_makes_the_reading_fail(
    name: str, chosen: st.DataObject
) -> None:
    read(name, chosen.draw(broken(VALID[name])))


@pytest.mark.parametrize("name", VALID)
@settings(deadline=None, max_examples=40)
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_manifest_never_make_the_reading_fail(name: str, data: bytes) -> None:
    read(name, data)


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("opening", [b"[", b"{", b"a.", b"a = [", b"a = { b = ", b'"', b"(", b"-r ", b"a["])
def test_deep_nesting_never_makes_the_reading_fail(name: str, opening: bytes) -> None:
    read(name, opening * 3_000)
    read(name, b"a = " + opening * 3_000)


@pytest.mark.parametrize("name", VALID)
def test_a_manifest_that_is_right_is_read(name: str) -> None:
    blob = read(name, VALID[name])
    assert {row.source: row.keys for row in blob.facts} == KEYS[name]
    assert blob.gaps == ()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("pyproject.toml", b"a = " + b"[" * 3000, "nested deeper than 64 levels"),
        ("Pipfile", b"a = " + b"{ b = " * 3000, "nested deeper than 64 levels"),
        ("pyproject.toml", b"[project]\nname = 'x'\nn = " + b"9" * 5000, "not valid TOML:"),
        ("pyproject.toml", VALID["pyproject.toml"], "not a requirement: c\u00e9"),
        ("Pipfile.lock", b'{"default": {"a": {"version": "==1"}}}', "a lock file in another layout"),
    ],
    ids=["arrays", "tables", "number", "name", "layout"],
)
def test_what_cannot_be_read_is_said(name: str, data: bytes, reason: str) -> None:
    said = unread(name, data)
    assert any(text.startswith(reason) for text in said), said


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pyproject.toml", b"\x0b"),
        ("pyproject.toml", b"a = " + b"9" * 5000),
        ("Pipfile", b"\x0c\n"),
        (".importlinter", b"[importlinter]\n[importlinter:contract:1][name = n\nlayers =\n  a\n"),
        (".importlinter", b"[importlinter:contract:1]\x0c\nname = n\n"),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n  a\u2028b = c:d\n".encode()),
    ],
)
def test_what_once_made_an_index_fail_is_read(name: str, data: bytes) -> None:
    assert read(name, data).facts
