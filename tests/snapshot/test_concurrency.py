"""Several processes index one repository at once: one correct snapshot each, nothing twice, no deadlock."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from kb.snapshot.gc import RetentionPolicy, collect_garbage
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, labels, state_of

_OVERLAPPING = """
    SELECT count(*) FROM {table} a JOIN {table} b ON a.ctid < b.ctid AND a.lineage_id = b.lineage_id
     AND {same} AND a.from_ord < b.to_ord AND b.from_ord < a.to_ord"""
_KEYS = {
    "snapshot_file": "a.path_id = b.path_id",
    "snapshot_entry": "a.artifact_pk = b.artifact_pk AND a.home_path_id = b.home_path_id",
    "grounding_location": "a.artifact_pk = b.artifact_pk AND a.span_pk = b.span_pk AND a.path_id = b.path_id AND a.n = b.n",
}


def all_at_once(work: Sequence[Callable[[], object]]) -> None:
    """Does each in a process of its own, let go together; all have to end well."""
    gate, opener = os.pipe()
    children = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside the test runner's threads
        for one in work:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.close(opener)
                    os.read(gate, 1)  # ends when the parent closes its side
                    one()
                    code = 0
                except BaseException:
                    traceback.print_exc()
                    sys.stderr.flush()
                finally:
                    os._exit(code)
            children.append(child)
    os.close(opener)
    os.close(gate)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)


def nothing_twice(database: Database) -> None:
    with database.reader() as connection:
        for table, same in _KEYS.items():
            query = _OVERLAPPING.format(table=table, same=same)
            assert connection.execute(query).fetchone() == (0,), table  # type: ignore[call-overload]
        double = connection.execute(
            """SELECT lineage_id, path_id, extractor, kind, key FROM lookup
               GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1"""
        ).fetchall()
        assert double == []


def history(repo: GitRepo, commits: int) -> list[str]:
    for number in range(12):
        repo.write(
            f"shop/by{number}.py", f"from shop.billing import charge\n\nx{number} = charge({number})\n"
        )
    shas = [repo.commit("bystanders").sha()]
    for number in range(commits - 1):
        repo.write(f"shop/part{number % 3}.py", f"import os\n\n\ndef part(x={number}):\n    return x\n")
        repo.write(
            "shop/billing.py", f"def charge(amount: int, rate: int = {number}) -> bool:\n    return True\n"
        )
        shas.append(repo.commit(f"commit {number}").sha())
    return shas


def every_state(database: Database) -> dict[str, object]:
    return {label: state_of(database, label) for label in labels(database)}


def test_different_commits_on_top_of_a_lineage(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    shas = history(shop, 6)
    index(parts, shop, shas[0])
    all_at_once([lambda sha=sha: index(parts, shop, sha) for sha in shas])
    clean = TestParts(second_database, tmp_path / "clean")
    for sha in shas:
        index(clean, shop, sha, full=True)
    assert sorted(labels(parts.database)) == sorted(shas)
    assert every_state(parts.database) == every_state(clean.database)
    nothing_twice(parts.database)


def test_different_commits_of_a_repository_nobody_has_indexed(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    shas = history(shop, 4)
    all_at_once([lambda sha=sha: index(parts, shop, sha) for sha in shas])
    clean = TestParts(second_database, tmp_path / "clean")
    for sha in shas:
        index(clean, shop, sha, full=True)
    assert sorted(labels(parts.database)) == sorted(shas)
    assert every_state(parts.database) == every_state(clean.database)
    nothing_twice(parts.database)
    assert count(parts.database, "repository") == 1


def test_the_same_commit(parts: TestParts, shop: GitRepo) -> None:
    shas = history(shop, 2)
    all_at_once([lambda: index(parts, shop)] * 4)
    assert labels(parts.database) == [shas[1]]
    assert count(parts.database, "lineage") == 1
    alone = state_of(parts.database, shas[1])
    index(parts, shop, full=True)
    assert state_of(parts.database, shas[1]) == alone
    nothing_twice(parts.database)


def test_full_and_incremental_runs_worktrees_and_gc_together(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    shas = history(shop, 4)
    index(parts, shop, shas[0])
    shop.write("shop/dirty.py", "x = 1\n")
    policy = RetentionPolicy(keep_last=100, newer_than=None)
    all_at_once(
        [
            lambda: index(parts, shop, shas[1]),
            lambda: index(parts, shop, shas[2], full=True),
            lambda: index(parts, shop, worktree=True),
            lambda: collect_garbage(parts, policy),
            lambda: index(parts, shop, shas[3]),
        ]
    )
    committed = [label for label in labels(parts.database) if not label.startswith("worktree:")]
    assert sorted(committed) == sorted(shas)
    clean = TestParts(second_database, tmp_path / "clean")
    for sha in shas:
        index(clean, shop, sha, full=True)
        assert state_of(parts.database, sha) == state_of(clean.database, sha)
    nothing_twice(parts.database)
