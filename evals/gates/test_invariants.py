"""Gate: nothing in the database hangs in the air, and indexing again reproduces every id."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kb.store.database import Database
from tests.indexing import TestParts, index, state_of

PROJECT = Path(__file__).resolve().parents[2]

ORPHANS = {
    "an artifact without a grounding": """SELECT count(*) FROM artifact a WHERE NOT EXISTS
        (SELECT FROM artifact_derived_from d WHERE d.artifact_pk = a.artifact_pk)""",
    "a grounding without its artifact": """SELECT count(*) FROM artifact_derived_from d WHERE NOT EXISTS
        (SELECT FROM artifact a WHERE a.artifact_pk = d.artifact_pk)""",
    "a grounding without its span": """SELECT count(*) FROM artifact_derived_from d WHERE NOT EXISTS
        (SELECT FROM code_span c WHERE c.span_pk = d.span_pk)""",
    "an occurrence without its parse": """SELECT count(*) FROM span_occurrence o WHERE NOT EXISTS
        (SELECT FROM parse p WHERE p.parse_id = o.parse_id)""",
    "an occurrence without its span": """SELECT count(*) FROM span_occurrence o WHERE NOT EXISTS
        (SELECT FROM code_span c WHERE c.span_pk = o.span_pk)""",
    "an entry without its artifact": """SELECT count(*) FROM snapshot_entry e WHERE NOT EXISTS
        (SELECT FROM artifact a WHERE a.artifact_pk = e.artifact_pk)""",
    "a location outside the groundings": """SELECT count(*) FROM grounding_location g WHERE NOT EXISTS
        (SELECT FROM artifact_derived_from d
         WHERE d.artifact_pk = g.artifact_pk AND d.span_pk = g.span_pk)""",
    "a location where the span does not occur": """SELECT count(*) FROM grounding_location g
        JOIN snapshot_file f ON f.lineage_id = g.lineage_id AND f.path_id = g.path_id
         AND f.from_ord < g.to_ord AND g.from_ord < f.to_ord
        WHERE NOT EXISTS (SELECT FROM span_occurrence o
         WHERE o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n)""",
    "an entry that is not located for all its life": """SELECT count(*) FROM snapshot s
        JOIN snapshot_entry e ON e.lineage_id = s.lineage_id
         AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord
        WHERE NOT EXISTS (SELECT FROM grounding_location g WHERE g.lineage_id = s.lineage_id
         AND g.artifact_pk = e.artifact_pk AND g.from_ord <= s.ordinal AND s.ordinal < g.to_ord)""",
    "a span of an artifact that no location covers": """SELECT count(*) FROM snapshot s
        JOIN snapshot_entry e ON e.lineage_id = s.lineage_id
         AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord
        JOIN artifact_derived_from d ON d.artifact_pk = e.artifact_pk
        WHERE NOT EXISTS (SELECT FROM grounding_location g WHERE g.lineage_id = s.lineage_id
         AND g.artifact_pk = d.artifact_pk AND g.span_pk = d.span_pk
         AND g.from_ord <= s.ordinal AND s.ordinal < g.to_ord)""",
    "two ranges of one file that overlap": """SELECT count(*) FROM snapshot_file a JOIN snapshot_file b
        ON a.lineage_id = b.lineage_id AND a.path_id = b.path_id AND a.from_ord < b.from_ord
        AND b.from_ord < a.to_ord""",
    "a logical key that is not unique": """SELECT count(*) FROM (
        SELECT s.snapshot_id, a.logical_key FROM snapshot s
        JOIN snapshot_entry e ON e.lineage_id = s.lineage_id
         AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord
        JOIN artifact a USING (artifact_pk) GROUP BY 1, 2 HAVING count(*) > 1) doubled""",
    "counts that do not add up": """SELECT count(*) FROM snapshot s WHERE
        s.files <> s.parsed + s.gap_files + s.no_language
        OR s.artifacts <> (SELECT count(*) FROM snapshot_entry e WHERE e.lineage_id = s.lineage_id
            AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord)
        OR s.files + s.excluded <> (SELECT count(*) FROM snapshot_file f
            WHERE f.lineage_id = s.lineage_id AND f.from_ord <= s.ordinal AND s.ordinal < f.to_ord)""",
}


@pytest.fixture
def parts(database: Database, tmp_path: Path) -> TestParts:
    return TestParts(database, tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """This project's own sources as a repository of two commits, whatever state its work tree is in."""
    folder = tmp_path / "project"
    folder.mkdir()

    def git(*words: str) -> None:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for source in sorted((PROJECT / "src").rglob("*.py")):
        target = folder / source.relative_to(PROJECT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    errors = folder / "src/kb/errors.py"
    errors.write_text(errors.read_text() + "\n\nclass OneMore(KbError):\n    pass\n")
    git("commit", "-q", "-a", "-m", "two")
    return folder


@pytest.mark.gate("invariants")
def test_nothing_hangs_in_the_air_after_a_full_index_and_an_incremental_one(
    parts: TestParts, project: Path
) -> None:
    index(parts, project, "HEAD~1", jobs=2)
    report = index(parts, project, "HEAD")
    assert report.incremental
    with parts.database.reader() as connection:
        for what, query in ORPHANS.items():
            row = connection.execute(query).fetchone()  # type: ignore[arg-type]
            assert row == (0,), what


@pytest.mark.gate("invariants")
def test_a_rebuild_reproduces_every_artifact_and_location(parts: TestParts, project: Path) -> None:
    index(parts, project, "HEAD~1", jobs=2)
    report = index(parts, project, "HEAD")
    extended = state_of(parts.database, report.sha)
    rebuilt = index(parts, project, "HEAD", full=True, jobs=2)
    assert not rebuilt.incremental
    assert state_of(parts.database, report.sha) == extended
    assert len(extended) == report.artifacts > 1000


@pytest.mark.gate("invariants")
def test_an_empty_database_gets_the_identical_ids_from_one_process(
    parts: TestParts, project: Path, second_database: Database, tmp_path: Path
) -> None:
    report = index(parts, project, "HEAD", jobs=2)
    index(TestParts(second_database, tmp_path / "other"), project, "HEAD", jobs=1)
    assert state_of(second_database, report.sha) == state_of(parts.database, report.sha)
