"""`kb index --worktree`: the uncommitted state, ephemeral, apart from every commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import RepositoryError, UsageError
from kb.retrieve.show import show
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexReport, IndexRequest
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, keys_of, labels, state_of
from tests.snapshot.conftest import BILLING, ORDERS

NEW = "def refund(amount: int) -> bool:\n    return amount < 0\n"


def index_worktree(parts: TestParts, repo: GitRepo) -> IndexReport:
    return index(parts, repo, worktree=True)


def soiled(repo: GitRepo) -> GitRepo:
    """An edit, a deletion, a staged file, an untracked one and an ignored one."""
    repo.write(".gitignore", "*.log.py\n").commit("ignore")
    repo.write("shop/orders.py", ORDERS + "\n\ndef more() -> None:\n    pass\n").delete("shop/billing.py")
    repo.write("shop/staged.py", "class Staged:\n    pass\n").git("add", "shop/staged.py")
    return repo.write("shop/refunds.py", NEW).write("noise.log.py", "class Noise:\n    pass\n")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_holds_what_a_commit_of_the_same_files_would(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    soiled(shop)
    index(parts, shop)
    made = index_worktree(parts, shop)
    assert made.sha.startswith("worktree:")
    assert made.dirty == []
    shop.commit("all of it")
    clean = TestParts(second_database, tmp_path / "clean")
    committed = index(clean, shop, full=True)
    assert state_of(parts.database, made.sha) == state_of(clean.database, committed.sha)
    assert made.sha == f"worktree:{shop.sha('HEAD^{tree}')}"


def test_ignored_files_are_no_part_of_it(parts: TestParts, shop: GitRepo) -> None:
    soiled(shop)
    index_worktree(parts, shop)
    with parts.database.reader() as connection:
        keys = {
            row[0] for row in connection.execute("SELECT logical_key FROM artifact WHERE kind = 'symbol'")
        }
    assert {"symbol:shop.refunds.refund", "symbol:shop.staged.Staged", "symbol:shop.orders.more"} <= keys
    assert not [key for key in keys if "noise" in key or "Noise" in key]


def test_the_users_repository_is_not_written_to(parts: TestParts, shop: GitRepo) -> None:
    soiled(shop)
    shop.git("status")  # whatever git itself wants to refresh is refreshed
    before = everything(shop.folder)
    index_worktree(parts, shop)
    assert everything(shop.folder) == before


def test_a_new_one_replaces_the_one_before(parts: TestParts, shop: GitRepo) -> None:
    committed = index(parts, shop)
    soiled(shop)
    first = index_worktree(parts, shop)
    shop.write("shop/refunds.py", NEW.replace("refund", "repay"))
    second = index_worktree(parts, shop)
    assert first.sha != second.sha
    assert labels(parts.database) == [committed.sha, second.sha]


def test_an_unchanged_work_tree_is_left_as_it_is(parts: TestParts, shop: GitRepo) -> None:
    soiled(shop)
    index_worktree(parts, shop)
    assert index_worktree(parts, shop).already_sealed
    assert count(parts.database, "snapshot") == 1


def test_a_clean_work_tree_holds_what_its_commit_holds(parts: TestParts, shop: GitRepo) -> None:
    committed = index(parts, shop)
    made = index_worktree(parts, shop)
    assert state_of(parts.database, made.sha) == state_of(parts.database, committed.sha)
    assert labels(parts.database) == [committed.sha, made.sha]


def test_commits_before_and_after_it_are_what_they_are_without_it(
    parts: TestParts, second_database: Database, shop: GitRepo, tmp_path: Path
) -> None:
    clean = TestParts(second_database, tmp_path / "clean")
    for number in range(20):
        shop.write(
            f"shop/part{number}.py", f"from shop.billing import charge\n\nx{number} = charge({number})\n"
        )
    shop.commit("parts")
    before = index(parts, shop)
    state = state_of(parts.database, before.sha)
    soiled(shop)
    assert index_worktree(parts, shop).incremental
    assert state_of(parts.database, before.sha) == state
    shop.git("stash", "-q", "--include-untracked")
    shop.write("shop/billing.py", BILLING.replace("amount > 0", "amount > 1")).commit("on")
    after = index(parts, shop)
    assert after.incremental
    rebuilt = index(clean, shop, full=True)
    assert state_of(parts.database, after.sha) == state_of(clean.database, rebuilt.sha)
    assert (after.files, after.spans, after.artifacts) == (rebuilt.files, rebuilt.spans, rebuilt.artifacts)


def test_a_commit_of_the_indexed_work_tree_is_a_snapshot_of_its_own(parts: TestParts, shop: GitRepo) -> None:
    soiled(shop)
    made = index_worktree(parts, shop)
    shop.commit("what was indexed")
    committed = index(parts, shop)
    assert not committed.already_sealed
    assert committed.parsed_blobs == 0
    assert state_of(parts.database, committed.sha) == state_of(parts.database, made.sha)


def test_what_is_asked_without_naming_it_is_answered_from_commits(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    head = shop.sha()
    shop.write("shop/orders.py", ORDERS.replace("limit = 10", "limit = 11"))
    made = index_worktree(parts, shop)
    here = str(shop.folder)
    assert show(parts, "Order.total", repo=here, sha=None, source=False).sha == head
    shown = show(parts, "shop/orders.py:10", repo=here, sha="worktree", source=True)
    assert shown.sha == made.sha
    lines = [line.text for unit in shown.units for place in unit.provenance for line in place.source or ()]
    assert "    limit = 11" in lines
    assert {place.sha for unit in shown.units for place in unit.provenance} == {made.sha}


def test_a_linked_work_tree_is_the_same_repository(parts: TestParts, shop: GitRepo, tmp_path: Path) -> None:
    index(parts, shop)
    shop.git("worktree", "add", "-q", tmp_path / "linked", "-b", "side")
    (tmp_path / "linked" / "shop" / "extra.py").write_text(NEW)
    made = index_repository(parts, IndexRequest(repo=str(tmp_path / "linked"), worktree=True, jobs=1))
    assert count(parts.database, "repository") == 1
    assert len(state_of(parts.database, made.sha)) > len(keys_of(parts.database, shop.sha()))


def test_it_is_of_head_and_needs_a_work_tree(parts: TestParts, shop: GitRepo, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        index(parts, shop, "HEAD~0", worktree=True)
    with pytest.raises(RepositoryError):
        index(parts, shop.bare_clone(tmp_path / "bare.git"), worktree=True)
    assert count(parts.database, "snapshot") == 0
