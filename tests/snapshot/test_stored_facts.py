"""What linking asks the database has the same answer question by question, all at once, and foreseen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.extract.registry import load_extractors
from kb.model.artifacts import LookupRow
from kb.snapshot.facts import StoredFacts
from kb.store.facts import LineageFacts
from kb.structure.facts import MODULE_SOURCE
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index

FILES = (
    "a.py",
    "a/__init__.py",
    "a/b.py",
    "a/b/c.py",
    "a/b/d/e.py",
    "a-b/x.py",
    "a.b/x.py",
    "a0/x.py",
    "z/é/x.py",
    "z/€.txt",
    "z/one two.py",
)
CHILDREN = {
    "": ["a-b/", "a.b/", "a.py", "a/", "a0/", "z/"],
    "a": ["__init__.py", "b.py", "b/"],
    "a/b": ["c.py", "d/"],
    "z": ["one two.py", "é/", "€.txt"],
    "nosuch": [],
}


@pytest.fixture
def reader(parts: TestParts, tmp_path: Path) -> Iterator[LineageFacts]:
    repo = GitRepo(tmp_path / "odd")
    for path in FILES:
        repo.write(path, "def run(): ...\n")
    index(parts, repo.commit())
    repo.delete("a-b/x.py").write("gone/x.py", "x = 1\n")
    index(parts, repo.commit())
    repo.delete("gone/x.py").write("a-b/x.py", "def run(): ...\n")
    index(parts, repo.commit())
    versions = {MODULE_SOURCE: 0} | {extractor.id: extractor.version for extractor in load_extractors()}
    with parts.database.reader() as connection:
        version = connection.execute("SELECT max(version) FROM fact WHERE source = %s", (MODULE_SOURCE,))
        versions[MODULE_SOURCE] = version.fetchone()[0]  # type: ignore[index]
        lineage = connection.execute("SELECT max(lineage_id) FROM lineage").fetchone()
        assert lineage is not None
        yield LineageFacts(connection, lineage[0], 2, versions)


@pytest.mark.parametrize("preload", [False, True])
def test_a_folder_lists_what_is_directly_in_it(reader: LineageFacts, preload: bool) -> None:
    facts = StoredFacts(reader, preload=preload)
    assert {folder: sorted(facts.children(folder)) for folder in CHILDREN} == {
        folder: sorted(names) for folder, names in CHILDREN.items()
    }


def test_what_is_foreseen_is_what_is_asked(reader: LineageFacts) -> None:
    asked = StoredFacts(reader, preload=False)
    foreseen = StoredFacts(reader, preload=False)
    sources = [row.source for row in asked.fact_rows("a/b.py")]
    keys = {(row.source, key) for path in FILES for row in asked.fact_rows(path) for key in row.keys}
    keys |= {("symbols", "nosuch")}
    rows = [LookupRow("a/b.py", "x", "inverse", f"{source}\x1f{key}", b"") for source, key in sorted(keys)]
    rows += [LookupRow("a/b.py", "x", "defining", stem, b"") for stem in ("x", "b/c", "nosuch")]
    rows += [LookupRow("a/b.py", "x", "module", stem, b"") for stem in ("a", "a/b", "nosuch")]
    rows += [
        LookupRow("a/b.py", "x", "fact", f"{path}\x1f{source}", b"") for path in FILES for source in sources
    ]
    foreseen.foresee(rows)
    for source, key in keys:
        assert foreseen.paths_with_key(source, key) == asked.paths_with_key(source, key)
    for suffix in ("x.py", "x/__init__.py", "b/c.py", "nosuch.py"):
        assert foreseen.paths_ending(suffix) == asked.paths_ending(suffix)
    assert asked.paths_ending("x.py") == ["a-b/x.py", "a.b/x.py", "a0/x.py", "z/é/x.py"]
    for path in (*FILES, "gone/x.py", "nosuch.py"):
        assert foreseen.has_path(path) == asked.has_path(path) == (path in FILES)
        for source in sources:
            assert foreseen.fact(path, source) == asked.fact(path, source)
