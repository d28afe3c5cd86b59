"""What a unit stands on, compared with HEAD: current, moved, changed, gone, unknown; and commits behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from kb.model.served import Freshness
from kb.retrieve.show import show
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index
from tests.snapshot.conftest import BILLING, ORDERS

CLOSE = "symbol:shop.orders.close"


def freshness(parts: TestParts, repo: GitRepo, sha: str, key: str = CLOSE) -> Freshness:
    """Of one unit as the snapshot of `sha` has it."""
    (unit,) = show(parts, key, repo=str(repo.folder), sha=sha, source=False).units
    return unit.freshness


def test_at_head_everything_is_current(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    sha = shop.sha()
    assert freshness(parts, shop, sha) == Freshness(
        snapshot_sha=sha, head_sha=sha, status="current", commits_behind=0
    )


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        (lambda repo: repo.write("shop/billing.py", BILLING + "\n# more\n"), "current"),
        (lambda repo: repo.write("shop/orders.py", ORDERS + "\n\nx = 1\n"), "current"),
        (lambda repo: repo.write("shop/orders.py", "# on top\n" + ORDERS), "moved"),
        (
            lambda repo: repo.write(
                "shop/orders.py", ORDERS.replace("limit = 10", "limit = 1\n    most = 2")
            ),
            "moved",
        ),
        (lambda repo: repo.move("shop/orders.py", "shop/sales.py"), "moved"),
        (lambda repo: repo.move("shop", "src/shop"), "moved"),
        (
            lambda repo: repo.delete("shop/orders.py").write("shop/all.py", BILLING + "\n\n" + ORDERS),
            "moved",
        ),
        (
            lambda repo: repo.write("shop/orders.py", ORDERS.replace("close(order: Order)", "close(order)")),
            "changed",
        ),
        (
            lambda repo: repo.write("shop/orders.py", ORDERS.replace("async def close", "def close")),
            "changed",
        ),
        (lambda repo: repo.write("shop/orders.py", ORDERS.partition("async def")[0]), "gone"),
        (lambda repo: repo.delete("shop/orders.py"), "gone"),
        (lambda repo: repo.write("shop/orders.py", ORDERS.replace("def close", "def end")), "gone"),
    ],
    ids=[
        "edit of another file",
        "added below",
        "comment on top",
        "lines above",
        "renamed file",
        "moved folder",
        "moved into another file",
        "changed signature",
        "no longer async",
        "deleted definition",
        "deleted file",
        "renamed definition",
    ],
)
def test_an_edit_makes_it(
    parts: TestParts, shop: GitRepo, edit: Callable[[GitRepo], GitRepo], status: str
) -> None:
    index(parts, shop)
    sha = shop.sha()
    edit(shop)
    shop.commit("edit")
    found = freshness(parts, shop, sha)
    assert (found.status, found.commits_behind) == (status, 1)
    assert (found.snapshot_sha, found.head_sha) == (sha, shop.sha())


def test_it_is_the_same_whether_head_is_indexed_or_not(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    sha = shop.sha()
    shop.write("shop/orders.py", "# on top\n" + ORDERS).commit()
    before = freshness(parts, shop, sha)
    index(parts, shop)
    assert freshness(parts, shop, sha) == before
    assert freshness(parts, shop, shop.sha()).status == "current"


def test_what_came_back_is_current_again(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    sha = shop.sha()
    shop.write("shop/orders.py", "x = 1\n").commit("break")
    assert freshness(parts, shop, sha).status == "gone"
    shop.write("shop/orders.py", ORDERS).commit("revert")
    assert freshness(parts, shop, sha).status == "current"


def test_a_unit_is_as_fresh_as_the_worst_it_stands_on(parts: TestParts, shop: GitRepo) -> None:
    """A class stands on its header and its members: one that goes makes it no longer current."""
    index(parts, shop)
    sha = shop.sha()
    shop.write("shop/orders.py", ORDERS.replace("class Order:", "class Order(dict):")).commit()
    assert freshness(parts, shop, sha, "symbol:shop.orders.Order").status == "changed"
    assert freshness(parts, shop, sha, "symbol:shop.orders.Order.total").status == "current"


@pytest.mark.parametrize(
    ("added", "of_the_class", "of_its_source"),
    [
        ("    most = 2\n", "changed", "changed"),
        ("    def refund(self) -> None: ...\n", "changed", "moved"),
        ("    class Line: ...\n", "changed", "moved"),
        ("    # a remark\n", "moved", "moved"),
    ],
    ids=["field", "method", "class", "comment"],
)
def test_a_class_that_has_grown_has_changed(
    parts: TestParts, shop: GitRepo, added: str, of_the_class: str, of_its_source: str
) -> None:
    """Every span that it stood on is there still, and its text is out of date."""
    index(parts, shop)
    sha = shop.sha()
    shop.write("shop/orders.py", ORDERS.replace("    limit = 10\n", f"{added}    limit = 10\n")).commit()
    assert freshness(parts, shop, sha, "symbol:shop.orders.Order").status == of_the_class
    assert freshness(parts, shop, sha, "passage:shop.orders.Order").status == of_its_source
    assert freshness(parts, shop, sha, "symbol:shop.orders.Order.total").status == "moved"


def test_commits_behind_counts_what_head_has_and_the_snapshot_has_not(
    parts: TestParts, shop: GitRepo
) -> None:
    index(parts, shop)
    sha = shop.sha()
    shop.checkout("side", new=True)
    for number in range(2):
        shop.write(f"side{number}.py", "x = 1\n").commit()
    shop.checkout("main").write("main.py", "x = 1\n").commit().merge("side")
    assert freshness(parts, shop, sha).commits_behind == 4  # one on main, two merged, the merge


def test_a_newer_snapshot_than_head_is_not_behind(parts: TestParts, shop: GitRepo) -> None:
    old = shop.sha()
    shop.write("more.py", "x = 1\n").commit()
    index(parts, shop)
    new = shop.sha()
    shop.checkout(old)
    found = freshness(parts, shop, new)
    assert (found.status, found.commits_behind, found.head_sha) == ("current", 0, old)


def test_after_a_force_push_the_distance_is_unknown_and_the_status_is_not(
    parts: TestParts, shop: GitRepo
) -> None:
    start = shop.sha()
    shop.write("old.py", "x = 1\n").commit("old")
    index(parts, shop)
    sha = shop.sha()
    shop.reset(start)
    shop.write("shop/orders.py", "# on top\n" + ORDERS).commit("rewritten")
    assert freshness(parts, shop, sha).commits_behind == 1
    shop.git("reflog", "expire", "--expire=now", "--all")
    shop.git("gc", "-q", "--prune=now")
    with parts.database.reader() as connection:
        assert connection.execute("SELECT count(*) FROM snapshot").fetchone() == (1,)
    # The commit is gone from the repository; what kb knows of it still answers by its sha's snapshot.
    index(parts, shop)
    assert freshness(parts, shop, shop.sha()).status == "current"


def test_a_repository_that_is_gone_is_unknown(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop, name="shop")
    sha = shop.sha()
    shutil.rmtree(shop.folder)
    (unit,) = show(parts, CLOSE, repo="shop", sha=None, source=False).units
    assert unit.freshness == Freshness(snapshot_sha=sha, head_sha=None, status="unknown", commits_behind=None)


def test_a_head_without_a_commit_is_unknown(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    sha = shop.sha()
    shop.checkout("orphan", orphan=True)
    found = freshness(parts, shop, sha)
    assert (found.status, found.head_sha, found.commits_behind) == ("unknown", None, None)


def test_a_work_trees_units_are_compared_with_head_too(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    shop.write("shop/orders.py", "# on top\n" + ORDERS)
    index(parts, shop, worktree=True)
    assert freshness(parts, shop, "worktree").status == "moved"
    assert freshness(parts, shop, "worktree", "symbol:shop.billing.charge").status == "current"
    shop.commit("as indexed")
    found = freshness(parts, shop, "worktree")
    assert (found.status, found.commits_behind) == ("current", None)
