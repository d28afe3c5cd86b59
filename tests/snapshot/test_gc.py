"""`kb gc`: what the policy keeps stays bit by bit, the rest goes wholly, beside whoever reads and writes."""

from __future__ import annotations

import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from kb.embed.embedding import embed_snapshots
from kb.errors import NotFoundError
from kb.git.overlays import worktree_objects
from kb.providers import open_provider
from kb.retrieve import search as searching
from kb.retrieve.answering import search_knowledge
from kb.retrieve.budget import MOST_BUDGET, Budget
from kb.retrieve.library import Library
from kb.retrieve.pages import Paging
from kb.retrieve.search import search
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import Ranking, SearchOptions
from kb.snapshot import faults
from kb.snapshot.gc import GcReport, RetentionPolicy, collect_garbage
from kb.store.catalog import snapshots
from kb.store.database import Connection, Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, keys_of, labels, state_of

NOTHING_BY_AGE = RetentionPolicy(keep_last=0, newer_than=None)

_CONTENTS = """
    WITH s AS (SELECT s.* FROM snapshot s JOIN commit_ref r USING (commit_id) WHERE r.sha = %(sha)s),
         f AS (SELECT f.* FROM snapshot_file f JOIN s USING (lineage_id)
               WHERE f.from_ord <= s.ordinal AND f.to_ord > s.ordinal),
         e AS (SELECT e.* FROM snapshot_entry e JOIN s USING (lineage_id)
               WHERE e.from_ord <= s.ordinal AND e.to_ord > s.ordinal)
    SELECT 'snapshot', s::text FROM s
    UNION ALL SELECT 'file', row(p.path, f.mode, b.oid, f.status, f.reason, f.parse_id)::text
      FROM f JOIN path p USING (path_id) LEFT JOIN blob b USING (blob_id)
    UNION ALL SELECT 'span', row(o, c)::text FROM f JOIN span_occurrence o USING (parse_id) JOIN code_span c USING (span_pk)
    UNION ALL SELECT 'gap', g::text FROM f JOIN gap g USING (parse_id)
    UNION ALL SELECT 'fact', t::text FROM f JOIN fact t USING (parse_id)
    UNION ALL SELECT 'artifact', a::text FROM e JOIN artifact a USING (artifact_pk)
    UNION ALL SELECT 'ground', d::text FROM e JOIN artifact_derived_from d USING (artifact_pk)
    UNION ALL SELECT 'edge', d::text FROM e JOIN artifact_edge d USING (artifact_pk)
    UNION ALL SELECT 'place', row(g.artifact_pk, g.span_pk, g.path_id, g.n)::text FROM s
      JOIN grounding_location g ON g.lineage_id = s.lineage_id
       AND g.from_ord <= s.ordinal AND g.to_ord > s.ordinal"""


def contents(connection: Connection, sha: str) -> list[tuple[str, str]]:
    """Every stored row that the snapshot of a commit leads to, to the bit."""
    return sorted(connection.execute(_CONTENTS, {"sha": sha}).fetchall())


def contents_of(database: Database, sha: str) -> list[tuple[str, str]]:
    with database.reader() as connection:
        return contents(connection, sha)


def grow(parts: TestParts, repo: GitRepo, commits: int, *, indexed: bool = True) -> list[str]:
    """Commits that add a file, change one and drop an older one; their SHAs, each indexed."""
    shas = []
    for number in range(24):  # so that a commit's difference is none of a quarter of the files
        repo.write(f"notes/{number}.bin", str(number))
    for number in range(commits):
        repo.write(
            f"shop/extra{number}.py", f"import os\n\n\ndef extra{number}() -> int:\n    return {number}\n"
        )
        repo.write("shop/billing.py", f"def charge(amount: int) -> bool:\n    return amount > {number}\n")
        if number > 1:
            repo.delete(f"shop/extra{number - 2}.py")
        shas.append(repo.commit(f"commit {number}").sha())
        if indexed:
            index(parts, repo)
    return shas


def ids(database: Database, query: str) -> set[tuple[object, ...]]:
    with database.reader() as connection:
        return set(connection.execute(query).fetchall())  # type: ignore[call-overload]


REACHED = {
    "artifact": "SELECT encode(artifact_id, 'hex') FROM artifact",
    "code_span": "SELECT encode(span_id, 'hex') FROM code_span",
    "blob": "SELECT encode(oid, 'hex') FROM blob",
    "path": "SELECT path FROM path",
    "commit_ref": "SELECT sha FROM commit_ref",
    "recipe": "SELECT encode(digest, 'hex') FROM recipe",
    "fact": "SELECT encode(oid, 'hex'), source, md5(payload) FROM fact JOIN parse USING (parse_id) JOIN blob USING (blob_id)",
    "gap": "SELECT encode(oid, 'hex'), reason FROM gap JOIN parse USING (parse_id) JOIN blob USING (blob_id)",
}


def test_heads_tags_and_the_last_stay(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 7)
    shop.tag("v1", shas[1]).tag("v2", shas[2], annotated=True).branch("side", shas[3])
    report = collect_garbage(parts, RetentionPolicy(keep_last=2, newer_than=None))
    assert labels(parts.database) == [shas[1], shas[2], shas[3], shas[5], shas[6]]
    assert sorted(label for _, label in report.dropped) == sorted([shas[0], shas[4]])
    assert report.kept == 5


def test_a_detached_head_stays(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 4)
    shop.checkout(shas[1])
    collect_garbage(parts, NOTHING_BY_AGE)
    assert labels(parts.database) == [shas[1], shas[3]]


def test_what_was_sealed_lately_stays(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 4)
    with parts.database.owner() as connection:
        connection.execute(
            """UPDATE snapshot SET sealed_at = now() - interval '40 days' FROM commit_ref c
               WHERE c.commit_id = snapshot.commit_id AND c.sha = ANY(%s)""",
            (shas[:2],),
        )
    collect_garbage(parts, RetentionPolicy(keep_last=0, newer_than=timedelta(days=50)))
    assert labels(parts.database) == shas
    collect_garbage(parts, RetentionPolicy(keep_last=0, newer_than=timedelta(days=30)))
    assert labels(parts.database) == shas[2:]


def test_the_tip_of_a_lineage_that_stays_does_too(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 3)
    shop.reset(shas[0])  # the commits after it belong to no branch any more
    collect_garbage(parts, NOTHING_BY_AGE)
    assert labels(parts.database) == [shas[0], shas[2]]


def test_what_stays_is_what_it_was_to_the_bit(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 6)
    shop.tag("v1", shas[2])
    before = {sha: contents_of(parts.database, sha) for sha in (shas[2], shas[5])}
    assert collect_garbage(parts, NOTHING_BY_AGE).dropped
    assert labels(parts.database) == [shas[2], shas[5]]
    assert {sha: contents_of(parts.database, sha) for sha in before} == before


def test_nothing_is_left_that_only_dropped_snapshots_reached(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    shas = grow(parts, shop, 6)
    index(parts, shop, excludes=("shop/orders.py",))
    shop.reset(shas[5]).tag("v1", shas[2])
    with parts.database.owner() as connection:
        connection.execute(
            "DELETE FROM snapshot WHERE recipe_id = (SELECT max(recipe_id) FROM recipe)"
        )  # what a killed run leaves
    collect_garbage(parts, NOTHING_BY_AGE)
    alone = TestParts(second_database, tmp_path / "alone")
    index(alone, shop, shas[2])
    index(alone, shop, shas[5])
    for table, query in REACHED.items():
        assert ids(parts.database, query) == ids(alone.database, query), table
        assert count(parts.database, table) == count(alone.database, table), table


def test_a_dry_run_counts_what_the_real_one_does_and_changes_nothing(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 5)
    shop.write("shop/dirty.py", "x = 1\n")
    index(parts, shop, worktree=True)
    shop.write("shop/dirty.py", "x = 2\n")
    index(parts, shop, worktree=True)
    shop.delete("shop/dirty.py").write("shop/last.py", "y = 1\n").commit()
    index(parts, shop)
    before = labels(parts.database), contents_of(parts.database, shas[0])
    planned = collect_garbage(parts, NOTHING_BY_AGE, dry_run=True)
    assert (labels(parts.database), contents_of(parts.database, shas[0])) == before
    done = collect_garbage(parts, NOTHING_BY_AGE)
    assert planned.dry_run
    assert not done.dry_run
    assert _counts(planned) == _counts(done)
    assert done.rows["artifact"] > 0
    assert done.worktree_objects > 0
    again = collect_garbage(parts, NOTHING_BY_AGE)
    assert (again.dropped, again.rows, again.membership_rows, again.worktree_objects) == ([], {}, 0, 0)


def _counts(report: GcReport) -> tuple[object, ...]:
    return (report.dropped, report.kept, report.membership_rows, report.rows, report.worktree_objects)


def test_the_next_difference_after_it_equals_a_clean_index(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    for number in range(16):
        shop.write(f"shop/by{number}.py", "from shop.billing import charge\n")
    shop.commit("bystanders")
    grow(parts, shop, 4)
    collect_garbage(parts, NOTHING_BY_AGE)
    shop.write("shop/billing.py", "def charge(amount: float) -> bool:\n    return True\n").commit()
    report = index(parts, shop)
    assert report.incremental
    clean = TestParts(second_database, tmp_path / "clean")
    rebuilt = index(clean, shop, full=True)
    assert state_of(parts.database, report.sha) == state_of(clean.database, rebuilt.sha)
    # An older commit, whose rows were erased, comes back as it was.
    report = index(parts, shop, "HEAD~3")
    rebuilt = index(clean, shop, "HEAD~3", full=True)
    assert state_of(parts.database, report.sha) == state_of(clean.database, rebuilt.sha)


def test_only_the_repository_that_was_named_loses_snapshots(
    parts: TestParts, shop: GitRepo, tmp_path: Path
) -> None:
    grow(parts, shop, 2)
    other = GitRepo(tmp_path / "other")
    others = grow(parts, other, 3)
    collect_garbage(parts, NOTHING_BY_AGE, repo=str(shop.folder))
    assert [label for label in labels(parts.database) if label in others] == others
    collect_garbage(parts, NOTHING_BY_AGE, repo="other")
    assert labels(parts.database) == [shop.sha(), others[-1]]
    with pytest.raises(NotFoundError):
        collect_garbage(parts, NOTHING_BY_AGE, repo="no-such")


def test_a_repository_that_is_gone_keeps_all_it_has(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 3)
    shutil.rmtree(shop.folder)
    report = collect_garbage(parts, NOTHING_BY_AGE)
    assert labels(parts.database) == shas
    assert len(report.notices) == 1


def test_a_reader_under_way_sees_the_state_that_it_began_with(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 4)
    with parts.database.reader() as connection:
        before = contents(connection, shas[0])
        assert before
        collect_garbage(parts, NOTHING_BY_AGE)
        assert labels(parts.database) == [shas[3]]
        assert contents(connection, shas[0]) == before
    assert contents_of(parts.database, shas[0]) == []


def test_it_waits_for_a_writer_between_its_rows_and_their_seal(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    grow(parts, shop, 3)
    shop.write("shop/late.py", "def late() -> None:\n    pass\n").commit()
    threads: list[threading.Thread] = []
    done = threading.Event()

    def collect() -> None:
        collect_garbage(parts, NOTHING_BY_AGE)
        done.set()

    def start(name: str) -> None:
        if name == "parsed" and not threads:
            threads.append(threading.Thread(target=collect))
            threads[0].start()
            _wait_until_blocked(parts.database)
            assert not done.is_set()

    faults.hooks.append(start)
    try:
        report = index(parts, shop)
    finally:
        faults.hooks.remove(start)
        for thread in threads:
            thread.join(60)
    assert done.is_set()
    clean = TestParts(second_database, tmp_path / "clean")
    rebuilt = index(clean, shop, full=True)
    assert state_of(parts.database, report.sha) == state_of(clean.database, rebuilt.sha)
    assert labels(parts.database) == [report.sha]


def _wait_until_blocked(database: Database) -> None:
    """Returns once a session waits for an advisory lock."""
    deadline = time.monotonic() + 60
    with database.reader() as connection:
        connection.autocommit = True
        while time.monotonic() < deadline:
            waiting = connection.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            ).fetchone()
            if waiting:
                return
    raise AssertionError("the collector did not wait")


def embed(parts: TestParts) -> int:
    with parts.database.reader() as connection:
        rows = snapshots(connection)
    provider = open_provider("static")
    return embed_snapshots(parts, rows, provider, None, lambda *_: None).embedded


def test_embeddings_of_living_texts_stay_and_those_of_dead_ones_go(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 4)
    assert embed(parts) > 0
    texts = """SELECT DISTINCT encode(a.text_digest, 'hex') FROM artifact a"""
    vectors = """SELECT encode(t.text_digest, 'hex'), m.embedding::text
                 FROM artifact_embedding m JOIN search_text t USING (text_pk)"""
    before = ids(parts.database, vectors)
    collect_garbage(parts, NOTHING_BY_AGE)
    after = ids(parts.database, vectors)
    living = {row[0] for row in ids(parts.database, texts)}
    assert after == {row for row in before if row[0] in living}
    assert after < before
    assert {row[0] for row in after} == living
    assert embed(parts) == 0
    assert labels(parts.database) == [shas[3]]


def found(parts: TestParts, repo: GitRepo, query: str, sha: str | None = None) -> list[tuple[str, float]]:
    result = search(parts, query, SearchOptions(k=100), repo=str(repo.folder), sha=sha)
    return sorted((hit.unit.key, hit.score) for hit in result.hits)


def test_what_stays_is_found_as_before(parts: TestParts, shop: GitRepo) -> None:
    shas = grow(parts, shop, 5)
    shop.tag("v1", shas[1])
    before = {sha: found(parts, shop, "charge amount extra", sha) for sha in shas}
    assert all(before.values())
    collect_garbage(parts, NOTHING_BY_AGE)
    for sha in (shas[1], shas[4]):
        assert found(parts, shop, "charge amount extra", sha) == before[sha]
    grow(parts, shop, 1)
    assert found(parts, shop, "charge amount extra")


def test_a_search_answers_in_full_from_the_snapshot_it_chose_though_that_is_collected_meanwhile(
    parts: TestParts, shop: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = grow(parts, shop, 3)[0]
    before = found(parts, shop, "charge amount extra", first)
    assert before

    def rank_after_the_collector(legs: Legs, query: str, options: SearchOptions) -> Ranking:
        collect_garbage(parts, NOTHING_BY_AGE)
        return rank(legs, query, options)

    with monkeypatch.context() as patched:
        patched.setattr(searching, "rank", rank_after_the_collector)
        assert found(parts, shop, "charge amount extra", first) == before
    assert first not in labels(parts.database)


def test_a_search_index_whose_snapshot_went_is_made_anew(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    first = grow(parts, shop, 1)[0]
    found(parts, shop, "extra")  # the index is through with the first snapshot
    shop.write("shop/extra0.py", "def other() -> int:\n    return 0\n").commit()
    index(parts, shop)
    grow(parts, shop, 3)
    collect_garbage(parts, NOTHING_BY_AGE)
    assert first not in labels(parts.database)
    clean = TestParts(second_database, tmp_path / "clean")
    index(clean, shop)
    for query in ("extra", "other", "charge", "return"):
        assert found(parts, shop, query) == found(clean, shop, query)


def test_a_server_that_was_asked_before_its_search_index_was_made_anew_answers_as_a_new_one(
    parts: TestParts, shop: GitRepo
) -> None:
    kept = grow(parts, shop, 1)[0]
    shop.tag("v1", kept)
    # Past the tagged commit the index has documents that go, and others come after it is made anew.
    shop.write("shop/passing.py", "def passing_extra() -> int:\n    return 7\n").commit()
    index(parts, shop)
    found(parts, shop, "extra")  # the index is through with the passing commit
    library = Library(parts, cwd=shop.folder)
    paging = Paging(Budget(MOST_BUDGET, lambda part: len(part.model_dump_json()) // 8), None, None)

    def asked(of: Library) -> list[tuple[str, float]]:
        answer = search_knowledge(
            of, "charge amount extra", repo=None, sha=kept, k=50, kinds=[], path=None, paging=paging
        )
        return sorted((hit.unit.key, hit.score) for hit in answer.hits)

    before = asked(library)
    assert before
    shop.write("shop/aaa.py", "def another() -> int:\n    return 9\n")
    shop.delete("shop/passing.py").commit()
    index(parts, shop, search=False)
    collect_garbage(parts, NOTHING_BY_AGE)
    with pytest.raises(NotFoundError, match="not in the search index"):
        asked(library)
    found(parts, shop, "another")  # makes the index anew
    assert asked(library) == asked(Library(parts, cwd=shop.folder)) == before


def test_objects_of_a_work_tree_that_is_still_indexed_stay(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    shop.write("shop/dirty.py", "x = 1\n")
    index(parts, shop, worktree=True)
    shop.write("shop/dirty.py", "x = 2\n")
    made = index(parts, shop, worktree=True)
    objects = worktree_objects(parts.home, str((shop.folder / ".git").resolve()))
    before = {path.name for path in objects.glob("??/*")}
    assert collect_garbage(parts, NOTHING_BY_AGE).worktree_objects == 3  # blob, folder, tree of the first
    after = {path.name for path in objects.glob("??/*")}
    assert len(before) == 6
    assert len(after) == 3
    assert labels(parts.database) == [shop.sha(), made.sha]
    assert index(parts, shop, worktree=True).already_sealed
    assert keys_of(parts.database, shop.sha())
