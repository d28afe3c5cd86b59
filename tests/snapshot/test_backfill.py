"""`kb backfill`: the past, oldest first; stopped at any moment it goes on where it was."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kb.errors import NotFoundError
from kb.snapshot import faults
from kb.snapshot.backfill import BackfillReport, BackfillRequest, backfill
from kb.snapshot.requests import IndexReport, IndexRequest
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, labels, state_of
from tests.snapshot.test_kills import run_in_child


def past(parts: TestParts, repo: GitRepo, since: str, **options: object) -> BackfillReport:
    request = BackfillRequest(
        repo=str(repo.folder), since=since, options=IndexRequest(repo=str(repo.folder), jobs=1), **options
    )  # type: ignore[arg-type]
    return backfill(parts, request, lambda *_: None)


def grown(repo: GitRepo, commits: int) -> list[str]:
    """Further commits of a file each; the SHAs of all, oldest first."""
    shas = [repo.sha()]
    for number in range(commits):
        repo.write(f"shop/part{number}.py", f"from shop.billing import charge\n\nx = charge({number})\n")
        shas.append(repo.commit(f"part {number}").sha())
    return shas


def merged(repo: GitRepo) -> tuple[str, list[str], list[str]]:
    """A history with a merge: its beginning, the branch's own line after it, and what was merged."""
    start = repo.sha()
    repo.checkout("side", new=True)
    side = [repo.write(f"side{number}.py", f"x = {number}\n").commit("side").sha() for number in range(2)]
    repo.checkout("main")
    own = [repo.write("main.py", "y = 1\n").commit("main").sha(), repo.merge("side").sha()]
    return start, own, side


def test_every_commit_is_sealed_oldest_first(parts: TestParts, shop: GitRepo) -> None:
    shas = grown(shop, 5)
    report = past(parts, shop, shas[0])
    assert labels(parts.database) == shas
    assert (report.commits, report.sealed, report.already) == (6, 6, 0)
    assert len(report.seconds) == 6


def test_each_commit_holds_what_a_clean_index_of_it_holds(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    shas = grown(shop, 4)
    past(parts, shop, shas[0])
    clean = TestParts(second_database, tmp_path / "clean")
    for sha in shas:
        index(clean, shop, sha, full=True)
        assert state_of(parts.database, sha) == state_of(clean.database, sha)


def test_who_is_told_hears_of_each_commit_in_turn(parts: TestParts, shop: GitRepo) -> None:
    shas = grown(shop, 2)
    heard: list[tuple[int, int, str]] = []

    def hear(number: int, commits: int, report: IndexReport) -> None:
        heard.append((number, commits, report.sha))

    backfill(parts, BackfillRequest(repo=str(shop.folder), since=shas[0]), hear)
    assert heard == [(1, 3, shas[0]), (2, 3, shas[1]), (3, 3, shas[2])]


def test_every_nth_commit_and_always_the_last(parts: TestParts, shop: GitRepo) -> None:
    shas = grown(shop, 5)
    report = past(parts, shop, shas[0], every=2)
    assert labels(parts.database) == [shas[0], shas[2], shas[4], shas[5]]
    assert report.commits == 4


def test_until_ends_it_before_head(parts: TestParts, shop: GitRepo) -> None:
    shas = grown(shop, 4)
    past(parts, shop, shas[1], until=shas[3])
    assert labels(parts.database) == shas[1:4]


def test_merged_branches_are_part_of_the_past(parts: TestParts, shop: GitRepo) -> None:
    start, own, side = merged(shop)
    past(parts, shop, start)
    sealed = labels(parts.database)
    assert set(sealed) == {start, *own, *side}
    assert sealed[0] == start
    assert sealed[-1] == own[-1]
    assert sealed.index(side[0]) < sealed.index(side[1])


def test_first_parent_leaves_merged_branches_out(parts: TestParts, shop: GitRepo) -> None:
    start, own, _ = merged(shop)
    past(parts, shop, start, first_parent=True)
    assert labels(parts.database) == [start, *own]


def test_repeated_it_does_what_is_left(parts: TestParts, shop: GitRepo) -> None:
    shas = grown(shop, 4)
    index(parts, shop, shas[2])
    first = past(parts, shop, shas[0])
    assert (first.sealed, first.already) == (4, 1)
    again = past(parts, shop, shas[0])
    assert (again.sealed, again.already, again.seconds) == (0, 5, [])


@pytest.mark.parametrize("point", ["parsed", "linked", "before_commit", "sealed"])
def test_killed_it_goes_on_where_it_was(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path, point: str
) -> None:
    shas = grown(shop, 4)
    left = 3

    def die(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        faults.hooks.append(die)
        past(parts, shop, shas[0])

    status = run_in_child(work)
    assert os.WIFSIGNALED(status)
    done = labels(parts.database)
    assert done == shas[: len(done)]
    assert 2 <= len(done) <= 3
    report = past(parts, shop, shas[0])
    assert report.already == len(done)
    assert labels(parts.database) == shas
    clean = TestParts(second_database, tmp_path / "clean")
    rebuilt = index(clean, shop, full=True)
    assert state_of(parts.database, shas[-1]) == state_of(clean.database, rebuilt.sha)


def test_a_commit_that_does_not_exist_is_said_before_anything_is_indexed(
    parts: TestParts, shop: GitRepo
) -> None:
    with pytest.raises(NotFoundError):
        past(parts, shop, "no-such-tag")
    assert labels(parts.database) == []
