"""`kb index` on small real repositories: counts, idempotence, sharing, refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.snapshot.backfill import BackfillRequest, backfill
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.snapshot.watch import WatchRequest, watch
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, keys_of, state_of
from tests.snapshot.conftest import BILLING, ORDERS


def test_every_file_is_accounted_for(parts: TestParts, shop: GitRepo) -> None:
    shop.write("logo.bin", b"\x00\x01").write("bad.py", b"\xff\xfe\x00 not text").write(
        "node_modules/x.py", "x"
    )
    shop.write("broken.py", "def fine():\n    pass\n\ndef broken(:\n    pass\n").commit("odd files")
    report = index(parts, shop)
    assert report.files == report.parsed + report.gap_files + report.no_language
    assert report.excluded == 1
    assert report.gap_files == 1
    reasons = {gap.path: gap for gap in report.gaps}
    assert set(reasons) == {"bad.py", "broken.py"}
    assert reasons["broken.py"].reason == "syntax_error"
    assert reasons["broken.py"].start_line is not None
    assert report.gap_count == len(report.gaps)
    assert "symbol:broken.fine" in keys_of(parts.database, report.sha, "symbol")


def test_a_sealed_commit_is_left_alone(parts: TestParts, shop: GitRepo) -> None:
    first = index(parts, shop)
    before = {table: count(parts.database, table) for table in ("artifact", "snapshot", "span_occurrence")}
    again = index(parts, shop)
    assert not first.already_sealed
    assert again.already_sealed
    assert (again.files, again.spans, again.artifacts) == (first.files, first.spans, first.artifacts)
    assert before == {table: count(parts.database, table) for table in before}


def test_symbols_are_found_under_their_dotted_names(parts: TestParts, shop: GitRepo) -> None:
    report = index(parts, shop)
    symbols = set(keys_of(parts.database, report.sha, "symbol"))
    assert {
        "symbol:shop.orders.Order",
        "symbol:shop.orders.Order.total",
        "symbol:shop.orders.Order.pay",
        "symbol:shop.orders.close",
        "symbol:shop.billing.charge",
    } <= symbols


def test_one_process_and_several_make_the_same_snapshot(
    parts: TestParts, shop: GitRepo, tmp_path: Path
) -> None:
    for number in range(90):
        shop.write(f"shop/part{number}.py", f"def part{number}():\n    return {number}\n")
    shop.commit("many")
    report = index(parts, shop, jobs=2)
    several = state_of(parts.database, report.sha)
    again = index(parts, shop, jobs=1, full=True)
    assert not again.already_sealed
    assert state_of(parts.database, report.sha) == several
    assert len(several) == report.artifacts
    assert count(parts.database, "snapshot") == 1


def test_a_second_commit_parses_only_new_blobs(parts: TestParts, shop: GitRepo) -> None:
    index(parts, shop)
    shop.write("shop/orders.py", ORDERS + "\n\ndef more() -> None:\n    pass\n").commit("more")
    report = index(parts, shop)
    assert report.incremental
    assert report.parsed_blobs == 1


def test_a_comment_on_top_renews_no_artifact(parts: TestParts, shop: GitRepo) -> None:
    first = index(parts, shop)
    before = state_of(parts.database, first.sha)
    shop.write("shop/orders.py", "# a comment\n# and another\n" + ORDERS).commit("comment")
    second = index(parts, shop)
    assert second.sha != first.sha
    assert state_of(parts.database, second.sha) == before
    assert count(parts.database, "artifact") == first.artifacts


def test_an_edit_in_one_method_renews_neither_its_class_nor_its_siblings(
    parts: TestParts, shop: GitRepo
) -> None:
    first = index(parts, shop)
    shop.write("shop/orders.py", ORDERS.replace("charge(self.total())", "charge(self.total() + 1)")).commit()
    second = index(parts, shop)
    renewed = {artifact for artifact, _ in state_of(parts.database, second.sha)} - {
        artifact for artifact, _ in state_of(parts.database, first.sha)
    }
    with parts.database.reader() as connection:
        keys = {
            row[0]
            for row in connection.execute(
                "SELECT logical_key FROM artifact WHERE encode(artifact_id, 'hex') = ANY(%s) AND kind = 'symbol'",
                (sorted(renewed),),
            )
        }
    assert not keys & {
        "symbol:shop.orders.Order",
        "symbol:shop.orders.Order.total",
        "symbol:shop.orders.close",
    }


def test_an_import_that_stands_in_two_files_is_located_in_its_own(parts: TestParts, shop: GitRepo) -> None:
    report = index(parts, shop)
    places = dict(state_of(parts.database, report.sha))
    for key, path in (
        ("import:shop.orders->os", "shop/orders.py"),
        ("import:shop.billing->os", "shop/billing.py"),
    ):
        with parts.database.reader() as connection:
            rows = connection.execute(
                "SELECT encode(artifact_id, 'hex') FROM artifact WHERE logical_key = %s", (key,)
            ).fetchall()
        (artifact,) = rows
        assert {place[0] for place in places[artifact[0]]} == {path}


def test_a_dirty_working_tree_is_said_not_to_be_indexed(parts: TestParts, shop: GitRepo) -> None:
    shop.write("shop/billing.py", BILLING + "\nx = 1\n").write("new.py", "y = 2\n")
    report = index(parts, shop)
    assert sorted(report.dirty) == ["modified: shop/billing.py", "untracked: new.py"]


def test_other_settings_make_another_snapshot(parts: TestParts, shop: GitRepo) -> None:
    whole = index(parts, shop)
    part = index(parts, shop, excludes=("billing.py",))
    assert not part.already_sealed
    assert part.excluded == 1
    assert part.artifacts < whole.artifacts
    assert count(parts.database, "snapshot") == 2


def test_a_bare_clone_gives_the_same_ids(parts: TestParts, shop: GitRepo, tmp_path: Path) -> None:
    report = index(parts, shop)
    first = state_of(parts.database, report.sha)
    index(parts, shop.bare_clone(tmp_path / "bare.git"))
    assert state_of(parts.database, report.sha) == first
    assert count(parts.database, "repository") == 2


@pytest.mark.parametrize("command", ["index", "backfill", "watch"])
def test_a_url_without_the_commit_leaves_no_mirror_that_nothing_lists(
    parts: TestParts, shop: GitRepo, command: str
) -> None:
    url = shop.folder.as_uri()

    def run(rev: str) -> None:
        if command == "index":
            index_repository(parts, IndexRequest(repo=url, commitish=rev, jobs=1))
        elif command == "backfill":
            backfill(parts, BackfillRequest(url, since=rev), lambda *_: None)
        else:
            next(watch(parts, WatchRequest(url, branch=rev, once=True, jobs=1), lambda _: None))

    with pytest.raises(NotFoundError):
        run("nosuch")
    assert not [path for path in (parts.home / "mirrors").iterdir() if path.is_dir()]
    run("main")
    with pytest.raises(NotFoundError):
        run("nosuch")
    assert [path for path in (parts.home / "mirrors").iterdir() if path.is_dir()]


def test_a_url_is_kept_as_a_mirror(parts: TestParts, shop: GitRepo) -> None:
    made = index_repository(parts, IndexRequest(repo=shop.folder.as_uri(), jobs=1))
    assert made.sha == shop.sha()
    assert made.dirty == []


def test_nothing_is_stored_for_what_is_no_repository(parts: TestParts, tmp_path: Path) -> None:
    with pytest.raises(RepositoryError):
        index(parts, tmp_path / "absent")
    assert count(parts.database, "repository") == 0


def test_an_unknown_commit_stores_nothing(parts: TestParts, shop: GitRepo) -> None:
    with pytest.raises((NotFoundError, RepositoryError)):
        index(parts, shop, "no-such-branch")
    assert count(parts.database, "repository") == 0


def test_a_name_that_is_taken_is_refused(parts: TestParts, shop: GitRepo, tmp_path: Path) -> None:
    index(parts, shop, name="shop")
    other = GitRepo(tmp_path / "other").write("a.py", "a = 1\n").commit()
    with pytest.raises(UsageError):
        index(parts, other, name="shop")


def test_hostile_names_and_messages_are_only_text(parts: TestParts, tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "x'); DROP TABLE artifact; --")
    name = "a'); DROP TABLE artifact; -- %s {0} \\ \".py"
    repo.write(name, 'def f():\n    "\'); DROP TABLE artifact; -- %s"\n').commit(
        "'); DROP TABLE artifact; --"
    )
    report = index(parts, repo)
    assert report.parsed == 1
    assert count(parts.database, "artifact") == report.artifacts > 0


def test_an_empty_commit_is_an_empty_snapshot(parts: TestParts, tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "empty").commit("nothing")
    report = index(parts, repo)
    assert (report.files, report.artifacts, report.gap_count) == (0, 0, 0)


def test_two_processes_that_index_the_same_commit_agree(
    parts: TestParts, shop: GitRepo, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda _: index(parts, shop), range(4)))
    assert {report.sha for report in reports} == {shop.sha()}
    assert count(parts.database, "snapshot") == 1
    assert count(parts.database, "lineage") == 1
    assert len(state_of(parts.database, shop.sha())) == reports[0].artifacts
