"""Mirrors that killed runs left: `kb gc` sweeps those, and no other."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from kb.errors import NotFoundError
from kb.git.mirror import UNCLAIMED
from kb.snapshot import faults
from kb.snapshot.gc import RetentionPolicy, collect_garbage
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts
from tests.snapshot.test_kills import run_in_child

KEEP_NOTHING = RetentionPolicy(keep_last=0, newer_than=None)


def mirrors(parts: TestParts) -> list[Path]:
    return [path for path in (parts.home / "mirrors").iterdir() if path.is_dir()]


def killed_at(parts: TestParts, url: str, point: str) -> None:
    """Indexes a URL in a process that is killed at a point."""

    def die(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        faults.hooks.append(die)
        index_repository(parts, IndexRequest(repo=url, jobs=1))

    assert os.WTERMSIG(run_in_child(work)) == signal.SIGKILL


def test_a_mirror_whose_run_was_killed_before_it_had_registered_the_repository_is_swept(
    parts: TestParts, shop: GitRepo
) -> None:
    killed_at(parts, shop.folder.as_uri(), "opened")
    (unfinished := parts.home / "mirrors" / f"{mirrors(parts)[0].name}.new-abc").mkdir()
    assert collect_garbage(parts, KEEP_NOTHING, dry_run=True).mirrors == 2
    assert len(mirrors(parts)) == 2
    assert collect_garbage(parts, KEEP_NOTHING).mirrors == 2
    assert mirrors(parts) == []
    assert not unfinished.exists()


def test_a_mirror_of_a_registered_repository_stays_whenever_its_run_was_killed(
    parts: TestParts, shop: GitRepo
) -> None:
    killed_at(parts, shop.folder.as_uri(), "registered")
    assert collect_garbage(parts, KEEP_NOTHING).mirrors == 0
    (mirror,) = mirrors(parts)
    (mirror / UNCLAIMED).touch()  # as where it was killed right after the row was written
    assert collect_garbage(parts, KEEP_NOTHING).mirrors == 0
    assert mirrors(parts) == [mirror]


def test_a_mirror_that_another_database_of_the_same_home_uses_stays(
    parts: TestParts, second_database: Database, shop: GitRepo
) -> None:
    index_repository(parts, IndexRequest(repo=shop.folder.as_uri(), jobs=1))
    other = TestParts(second_database, parts.home)
    assert collect_garbage(other, KEEP_NOTHING).mirrors == 0
    with pytest.raises(NotFoundError):
        index_repository(other, IndexRequest(repo=shop.folder.as_uri(), commitish="nowhere", jobs=1))
    assert len(mirrors(parts)) == 1


def test_a_mirror_that_is_being_fetched_is_not_swept(parts: TestParts, shop: GitRepo) -> None:
    killed_at(parts, shop.folder.as_uri(), "opened")
    (mirror,) = mirrors(parts)
    with mirror.with_name(f"{mirror.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert collect_garbage(parts, KEEP_NOTHING).mirrors == 0
    assert mirrors(parts) == [mirror]


def test_a_mirror_that_went_between_its_fetch_and_the_index_is_fetched_again(
    parts: TestParts, shop: GitRepo
) -> None:
    report = index_repository(parts, IndexRequest(repo=shop.folder.as_uri(), jobs=1, fetch=False))
    assert report.sha == shop.sha()
