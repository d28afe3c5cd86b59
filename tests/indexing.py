"""Index real repositories in tests, and read back what a snapshot holds with SQL of the tests' own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexReport, IndexRequest
from kb.store.database import Database
from tests.gitrepo import GitRepo

Located = tuple[str, str, int]
"""path, span id in hex, n"""
State = frozenset[tuple[str, frozenset[Located]]]
"""(artifact id in hex, its located groundings) of every artifact of a snapshot"""


@dataclass(frozen=True)
class TestParts:
    """What use cases are given."""

    __test__ = False

    database: Database
    home: Path


def index(parts: TestParts, repo: GitRepo | Path, commitish: str = "HEAD", **options: object) -> IndexReport:
    """Indexes one commit in this process unless `jobs` says otherwise."""
    where = repo.folder if isinstance(repo, GitRepo) else repo
    options.setdefault("jobs", 1)
    return index_repository(parts, IndexRequest(repo=str(where), commitish=commitish, **options))  # type: ignore[arg-type]


def state_of(database: Database, label: str) -> State:
    """What the newest snapshot of a commit, or of `worktree:<tree>`, holds."""
    with database.reader() as connection:
        rows = connection.execute(
            """SELECT encode(a.artifact_id, 'hex'), p.path, encode(c.span_id, 'hex'), g.n
               FROM (SELECT s.* FROM snapshot s LEFT JOIN commit_ref r USING (commit_id)
                     WHERE coalesce(r.sha, 'worktree:' || s.tree) = %s
                     ORDER BY s.snapshot_id DESC LIMIT 1) s
               JOIN snapshot_entry e ON e.lineage_id = s.lineage_id
                AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord
               JOIN artifact a USING (artifact_pk)
               LEFT JOIN grounding_location g ON g.lineage_id = s.lineage_id
                AND g.artifact_pk = a.artifact_pk AND g.from_ord <= s.ordinal AND s.ordinal < g.to_ord
               LEFT JOIN path p ON p.path_id = g.path_id
               LEFT JOIN code_span c ON c.span_pk = g.span_pk""",
            (label,),
        ).fetchall()
    found: dict[str, set[Located]] = {}
    for artifact, path, span, n in rows:
        found.setdefault(artifact, set()).add((path, span, n))
    return frozenset((artifact, frozenset(places)) for artifact, places in found.items())


def keys_of(database: Database, sha: str, kind: str | None = None) -> list[str]:
    """Logical keys of the newest snapshot of a commit, sorted; of one kind where it is given."""
    with database.reader() as connection:
        rows = connection.execute(
            """SELECT a.logical_key
               FROM (SELECT s.* FROM snapshot s JOIN commit_ref r USING (commit_id)
                     WHERE r.sha = %s ORDER BY s.snapshot_id DESC LIMIT 1) s
               JOIN snapshot_entry e ON e.lineage_id = s.lineage_id
                AND e.from_ord <= s.ordinal AND s.ordinal < e.to_ord
               JOIN artifact a USING (artifact_pk)
               WHERE %s::text IS NULL OR a.kind = %s ORDER BY 1""",
            (sha, kind, kind),
        ).fetchall()
    return [str(row[0]) for row in rows]


def labels(database: Database) -> list[str]:
    """Every snapshot: its commit, or `worktree:<tree>`, in the order of sealing."""
    with database.reader() as connection:
        rows = connection.execute(
            """SELECT coalesce(r.sha, 'worktree:' || s.tree)
               FROM snapshot s LEFT JOIN commit_ref r USING (commit_id) ORDER BY s.snapshot_id"""
        ).fetchall()
    return [str(row[0]) for row in rows]


def count(database: Database, table: str) -> int:
    """Rows of a table."""
    with database.reader() as connection:
        row = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])
