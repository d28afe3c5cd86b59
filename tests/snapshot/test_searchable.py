"""A snapshot that was asked to be searchable is so for a client that may only read."""

from __future__ import annotations

from kb.store.catalog import snapshots
from kb.store.search import reading
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index
from tests.snapshot.conftest import BILLING


def readable(parts: TestParts, sha: str) -> bool:
    with parts.database.reader() as connection:
        (snapshot,) = snapshots(connection, sha=sha)
        return reading.open_view(connection, snapshot.lineage_id, snapshot.ordinal) is not None


def test_a_first_index_and_the_commits_after_it_are_searchable_at_once(
    parts: TestParts, shop: GitRepo
) -> None:
    first = index(parts, shop, search=True)
    assert readable(parts, first.sha)
    shop.write("shop/billing.py", BILLING + "\n\ndef refund() -> None:\n    pass\n").commit()
    second = index(parts, shop, search=True)
    assert second.incremental
    assert readable(parts, second.sha)


def test_without_it_the_snapshot_is_sealed_and_nothing_else(parts: TestParts, shop: GitRepo) -> None:
    report = index(parts, shop)
    assert not readable(parts, report.sha)
    assert index(parts, shop, search=True).already_sealed
    assert readable(parts, report.sha)
