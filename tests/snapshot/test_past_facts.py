"""Facts stay while they may be linked by; a blob that comes back later is read again, to the same effect."""

from __future__ import annotations

from pathlib import Path

from kb.snapshot.gc import RetentionPolicy, collect_garbage
from kb.store.database import Database
from kb.store.facts import FACTS_KEPT
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, state_of


def edited(parts: TestParts, repo: GitRepo, times: int) -> None:
    for number in range(times):
        repo.write("shop/edited.py", f"def edited():\n    return {number + 1}\n")
        index(parts, repo.commit())


def facts_of(database: Database, path: str) -> int:
    """Fact rows of the blobs that a file ever had."""
    with database.reader() as connection:
        row = connection.execute(
            """SELECT count(*) FROM (SELECT DISTINCT parse_id FROM snapshot_file JOIN path USING (path_id)
                                     WHERE path = %s) f JOIN fact USING (parse_id)""",
            (path,),
        ).fetchone()
    assert row is not None
    return int(row[0])


def shop(folder: Path) -> GitRepo:
    repo = GitRepo(folder)
    repo.write("shop/__init__.py", "from shop.edited import edited\n")
    repo.write("shop/edited.py", "def edited():\n    return 0\n")
    return repo.write("shop/still.py", "from shop import edited\n\n\ndef still():\n    return edited()\n")


def test_a_blob_that_comes_back_soon_is_not_read_again(parts: TestParts, tmp_path: Path) -> None:
    repo = shop(tmp_path / "shop")
    first = index(parts, repo.commit()).sha
    edited(parts, repo, FACTS_KEPT - 2)
    repo.git("checkout", "-q", first, "--", "shop/edited.py")
    assert index(parts, repo.commit()).parsed_blobs == 0


def test_facts_of_blobs_that_no_tip_has_had_for_long_go_and_come_again(
    parts: TestParts, second_database: Database, tmp_path: Path
) -> None:
    repo = shop(tmp_path / "shop")
    first = index(parts, repo.commit()).sha
    of_one = facts_of(parts.database, "shop/edited.py")
    still = facts_of(parts.database, "shop/still.py")
    edited(parts, repo, FACTS_KEPT + 5)
    assert facts_of(parts.database, "shop/edited.py") == of_one * (FACTS_KEPT + 1)  # and the present one
    assert facts_of(parts.database, "shop/still.py") == still
    repo.git("checkout", "-q", first, "--", "shop/edited.py")
    report = index(parts, repo.commit())
    assert (report.incremental, report.parsed_blobs) == (True, 1)
    index(TestParts(second_database, tmp_path / "clean"), repo)
    assert state_of(parts.database, report.sha) == state_of(second_database, report.sha)
    assert state_of(parts.database, first)


def test_a_blob_that_is_elsewhere_at_a_tip_keeps_its_facts(parts: TestParts, tmp_path: Path) -> None:
    repo = shop(tmp_path / "shop").write("shop/copy.py", "def edited():\n    return 0\n")
    index(parts, repo.commit())
    edited(parts, repo, FACTS_KEPT + 2)
    repo.write("shop/copy.py", "def edited():\n    return 0\n# moved\n").write(
        "shop/edited.py", "def edited():\n    return 0\n"
    )
    assert index(parts, repo.commit()).parsed_blobs == 1  # the one with the comment


def test_gc_takes_what_was_left_while_others_wrote(parts: TestParts, tmp_path: Path) -> None:
    repo = shop(tmp_path / "shop")
    index(parts, repo.commit())
    of_one = facts_of(parts.database, "shop/edited.py")
    with parts.database.writer() as other:
        other.autocommit = True
        other.execute("SELECT pg_advisory_lock_shared(x'6b620001'::int8)")  # as a writer holds it
        edited(parts, repo, FACTS_KEPT + 5)
        assert facts_of(parts.database, "shop/edited.py") == of_one * (FACTS_KEPT + 6)
    collect_garbage(parts, RetentionPolicy())
    assert facts_of(parts.database, "shop/edited.py") == of_one * (FACTS_KEPT + 1)  # and the present one
    assert count(parts.database, "snapshot") == FACTS_KEPT + 6
