"""`kb watch`: a branch's newest commit is indexed whenever it is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.errors import NotFoundError, RepositoryError
from kb.snapshot.watch import Seen, WatchRequest, watch
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, labels, state_of


def follow(
    parts: TestParts, repo: GitRepo | Path | str, steps: list[Callable[[], object]], branch: str | None = None
) -> list[Seen]:
    """What is seen when between two looks one of the steps happens; ends after the last step's look."""
    pending = iter(steps)
    where = repo.folder if isinstance(repo, GitRepo) else repo

    class Over(Exception):
        """The test has seen enough."""

    def pause(_: float) -> None:
        step = next(pending, None)
        if step is None:
            raise Over
        step()

    def looks() -> Iterator[Seen]:
        try:
            yield from watch(parts, WatchRequest(repo=str(where), branch=branch, jobs=1), pause)
        except Over:
            return

    return list(looks())


def shas(seen: list[Seen]) -> list[str]:
    return [one.report.sha for one in seen if one.report is not None]


def test_new_commits_are_indexed_as_they_appear(parts: TestParts, shop: GitRepo) -> None:
    wanted = [shop.sha()]

    def commit() -> None:
        shop.write("more.py", f"x = {len(wanted)}\n").commit()
        wanted.append(shop.sha())

    seen = follow(parts, shop, [commit, commit])
    assert shas(seen) == wanted == labels(parts.database)


def test_nothing_is_done_where_nothing_is_new(parts: TestParts, shop: GitRepo) -> None:
    assert len(follow(parts, shop, [lambda: None, lambda: None])) == 1


def test_head_is_followed_over_a_switch_of_branches(parts: TestParts, shop: GitRepo) -> None:
    main = shop.sha()
    side = shop.checkout("side", new=True).write("side.py", "x = 1\n").commit().sha()
    shop.checkout("main")
    seen = follow(parts, shop, [lambda: shop.checkout("side"), lambda: shop.checkout("main")])
    assert shas(seen) == [main, side, main]
    assert [one.report.already_sealed for one in seen if one.report] == [False, False, True]


def test_a_branch_is_followed_wherever_head_is(parts: TestParts, shop: GitRepo) -> None:
    side = shop.checkout("side", new=True).write("side.py", "x = 1\n").commit().sha()
    shop.checkout("main")
    seen = follow(parts, shop, [lambda: shop.write("main.py", "y = 1\n").commit()], branch="side")
    assert shas(seen) == [side]


def test_rewritten_history_is_followed(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    start = shop.sha()
    old = shop.write("old.py", "x = 1\n").commit().sha()

    def rewrite() -> None:
        shop.reset(start)
        shop.write("new.py", "x = 2\n").commit("rewritten")
        shop.git("reflog", "expire", "--expire=now", "--all")
        shop.git("gc", "-q", "--prune=now")

    seen = follow(parts, shop, [rewrite])
    assert shas(seen) == [old, shop.sha()]
    clean = TestParts(second_database, tmp_path / "clean")
    index(clean, shop, full=True)
    assert state_of(parts.database, shop.sha()) == state_of(clean.database, shop.sha())


def test_a_branch_that_is_gone_for_a_while_is_said_once_and_looked_for_again(
    parts: TestParts, shop: GitRepo
) -> None:
    sha = shop.branch("side").sha("side")
    steps: list[Callable[[], object]] = [
        lambda: shop.git("branch", "-D", "side"),
        lambda: None,
        lambda: shop.write("x.py", "x = 1\n").commit().branch("side"),
    ]
    seen = follow(parts, shop, steps, branch="side")
    assert [one.trouble is not None for one in seen] == [False, True, False]
    assert shas(seen) == [sha, shop.sha()]


def test_a_url_is_fetched_at_each_look(parts: TestParts, shop: GitRepo) -> None:
    first = shop.sha()
    seen = follow(parts, shop.folder.as_uri(), [lambda: shop.write("x.py", "x = 1\n").commit()])
    assert shas(seen) == [first, shop.sha()]


def test_once_looks_once_and_takes_trouble_for_an_error(parts: TestParts, shop: GitRepo) -> None:
    def never(_: float) -> None:
        raise AssertionError

    where = str(shop.folder)
    assert shas(list(watch(parts, WatchRequest(repo=where, once=True, jobs=1), never))) == [shop.sha()]
    with pytest.raises((NotFoundError, RepositoryError)):
        list(watch(parts, WatchRequest(repo=where, branch="absent", once=True), never))
