"""The commands from end to end: a real repository, a real database, what is printed and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from kb.cli.main import run
from tests.gitrepo import GitRepo

ORDERS = '''\
"""Orders of the shop."""

import os


class Order:
    """What somebody bought."""

    def total(self) -> int:
        """The sum of the lines."""
        return 1 + len(os.sep)
'''
BROKEN = "def fine():\n    return 1\n\n\ndef broken(:\n    return 2\n"


@pytest.fixture
def kb(database, tmp_path, monkeypatch, capsys):
    """Runs kb against the test's database; returns (exit code, stdout, stderr)."""
    parts = conninfo_to_dict(database.urls.owner)
    password = f":{quote(parts['password'], safe='')}" if "password" in parts else ""
    url = (
        f"postgresql://{parts['user']}{password}@/{parts['dbname']}"
        f"?host={quote(parts['host'], safe='')}&port={parts.get('port', 5432)}"
    )
    monkeypatch.setenv("KB_DB_URL", url)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_JOBS", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def shop(tmp_path) -> GitRepo:
    repo = GitRepo(tmp_path / "shop")
    return repo.write("shop/__init__.py").write("shop/orders.py", ORDERS).write("notes.bin", "x").commit()


def _document(result: tuple[int, str, str], schema: str) -> dict:
    code, out, err = result
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["schema"] == schema
    return document


def test_index_prints_the_commit_the_counts_and_where_each_file_went(kb, shop):
    code, out, err = kb("index", shop.folder)
    first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert first.startswith(f"indexed {shop.sha()[:12]}: 3 files, ")
    assert first.endswith(" artifacts, 0 gaps")
    assert second.startswith("  shop: 2 parsed, 0 unreadable, 1 in no language kb reads, 0 excluded; ")


def test_indexing_again_says_that_nothing_was_to_do(kb, shop):
    kb("index", shop.folder)
    code, out, _ = kb("index", shop.folder)
    assert code == 0
    assert out.startswith(f"already indexed {shop.sha()[:12]}: 3 files, ")
    assert "; nothing to do\n" in out


def test_index_as_json_is_one_document_whose_counts_add_up(kb, shop):
    document = _document(kb("index", shop.folder, "--json"), "kb.index/1")
    assert document["repository"] == "shop"
    assert document["sha"] == shop.sha()
    assert document["already_sealed"] is False
    assert document["files"] == document["parsed"] + document["gap_files"] + document["no_language"] == 3


def test_gaps_do_not_fail_an_index_unless_that_is_asked_for(kb, shop):
    shop.write("shop/broken.py", BROKEN).commit()
    code, out, _ = kb("index", shop.folder)
    assert code == 0
    assert "shop/broken.py:5" in out
    assert kb("index", shop.folder, "--fail-on-gaps")[0] == 1


def test_uncommitted_changes_are_named_and_left_out(kb, shop):
    shop.write("shop/orders.py", ORDERS + "\n\nEXTRA = 1\n").write("shop/new.py", "NEW = 1\n")
    _, out, _ = kb("index", shop.folder)
    assert "not indexed: 2 uncommitted changes in the working tree\n" in out
    assert "shop/new.py" in out
    assert kb("show", "shop/new.py", "--repo", "shop")[0] == 3


def test_an_older_commit_is_indexed_by_any_name_it_has(kb, shop):
    shop.tag("v1").write("shop/more.py", "MORE = 1\n").commit()
    document = _document(kb("index", shop.folder, "--sha", "v1", "--json"), "kb.index/1")
    assert document["sha"] == shop.sha("v1")


def test_show_of_a_line_names_the_method_with_its_lines_at_the_commit(kb, shop):
    kb("index", shop.folder)
    document = _document(kb("show", "shop/orders.py:10", "--json"), "kb.show/1")
    nearest = document["units"][0]
    assert "total" in nearest["title"]
    places = {(place["file"], place["sha"]) for unit in document["units"] for place in unit["provenance"]}
    assert places == {("shop/orders.py", shop.sha())}
    assert nearest["freshness"]["status"] == "current"


def test_show_source_prints_the_very_lines_under_their_numbers(kb, shop):
    kb("index", shop.folder)
    code, out, _ = kb("show", "shop/orders.py:9", "--source")
    assert code == 0
    shown = {line.strip().partition("  ")[0]: line.partition("  9  ")[2] for line in out.splitlines()}
    assert shown["9"] == "    def total(self) -> int:"


def test_every_line_that_source_prints_is_that_line_of_the_file(kb, shop):
    kb("index", shop.folder)
    document = _document(kb("show", "shop/orders.py", "--source", "--json"), "kb.show/1")
    lines = ORDERS.splitlines()
    printed = [line for unit in document["units"] for place in unit["provenance"] for line in place["source"]]
    assert printed
    assert [line for line in printed if lines[line["line"] - 1] != line["text"]] == []


def test_show_finds_a_unit_by_its_key_by_the_end_of_it_and_by_a_span(kb, shop):
    kb("index", shop.folder)
    by_end = _document(kb("show", "Order.total", "--json"), "kb.show/1")
    unit = by_end["units"][0]
    by_key = _document(kb("show", unit["key"], "--json"), "kb.show/1")
    by_span = _document(kb("show", unit["provenance"][0]["span_id"][:16], "--json"), "kb.show/1")
    assert (by_end["matched"], by_key["matched"], by_span["matched"]) == ("name", "key", "span")
    assert by_key["units"] == [unit]
    assert unit in by_span["units"]


def test_show_of_something_unknown_exits_3_and_offers_what_is_near(kb, shop):
    kb("index", shop.folder)
    code, out, err = kb("show", "Ordr.total")
    assert (code, out) == (3, "")
    assert err.splitlines()[0].startswith("kb: error: unknown target: nothing is called 'Ordr.total'")
    assert "Order.total" in err.splitlines()[1]


def test_a_commit_that_is_not_indexed_is_answered_by_its_nearest_indexed_ancestor_and_says_so(kb, shop):
    kb("index", shop.folder)
    indexed = shop.sha()
    shop.write("shop/orders.py", "# moved down\n" + ORDERS).commit()
    code, out, _ = kb("show", "Order.total", "--repo", "shop")
    assert code == 0
    assert out.startswith(f"shop at {indexed[:12]}\nnote: HEAD ({shop.sha()[:12]}) is not indexed")
    assert f"moved at HEAD ({shop.sha()[:12]}), 1 commit behind" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "order \udcff"),
        ("search", "order", "--path", "\udcff"),
        ("search", "order", "--kind", "\udcff"),
        ("search", "order", "--repo", "\udcff"),
        ("show", "symbol:\udcff"),
        ("log", "symbol:\udcff"),
    ],
)
def test_an_argument_that_is_no_text_is_refused_in_one_line(kb, shop, arguments):
    kb("index", str(shop.folder))
    code, _, err = kb(*arguments)
    assert code in (2, 3)
    assert "Traceback" not in err


def test_gaps_lists_what_could_not_be_read_with_its_lines(kb, shop):
    shop.write("shop/broken.py", BROKEN).commit()
    kb("index", shop.folder)
    document = _document(kb("gaps", "--json"), "kb.gaps/1")
    assert [(gap["path"], gap["reason"]) for gap in document["gaps"]] == [("shop/broken.py", "syntax_error")]
    code, out, _ = kb("gaps")
    assert code == 0
    assert "  shop/broken.py:5" in out


def test_status_shows_repositories_snapshots_and_the_database_without_its_password(kb, shop):
    kb("index", shop.folder)
    document = _document(kb("status", "--json"), "kb.status/1")
    (repository,) = document["repositories"]
    assert repository["name"] == "shop"
    assert repository["head"] == shop.sha()
    assert repository["head_indexed"] is True
    assert [snapshot["sha"] for snapshot in repository["snapshots"]] == [shop.sha()]
    code, out, _ = kb("status")
    assert code == 0
    assert f"HEAD {shop.sha()[:12]} is indexed" in out


def test_status_before_the_first_index_says_how_to_begin(kb):
    code, out, _ = kb("status")
    assert code == 0
    assert "nothing is indexed yet: kb index <path or URL>" in out


def test_with_several_repositories_and_none_chosen_the_choices_are_named(kb, shop, tmp_path):
    other = GitRepo(tmp_path / "other").write("a.py", "A = 1\n").commit()
    kb("index", shop.folder)
    kb("index", other.folder)
    code, _, err = kb("gaps")
    assert code == 2
    assert "other, shop" in err


def test_the_current_folder_chooses_the_repository(kb, shop, tmp_path, monkeypatch):
    other = GitRepo(tmp_path / "other").write("a.py", "A = 1\n").commit()
    kb("index", shop.folder)
    kb("index", other.folder)
    monkeypatch.chdir(shop.folder / "shop")
    assert _document(kb("gaps", "--json"), "kb.gaps/1")["repository"] == "shop"
    assert _document(kb("gaps", "--repo", other.folder, "--json"), "kb.gaps/1")["repository"] == "other"


def test_repositories_are_listed_renamed_and_removed(kb, shop):
    kb("index", shop.folder)
    assert kb("repo", "rename", "shop", "store") == (0, "shop is now store\n", "")
    listed = _document(kb("repo", "list", "--json"), "kb.repo.list/1")["repositories"]
    assert [(row["name"], row["is_remote"]) for row in listed] == [("store", False)]
    code, out, _ = kb("repo", "remove", "store", "--yes")
    assert (code, out.startswith("removed store (")) == (0, True)
    assert kb("repo", "list")[1] == "nothing is indexed yet: kb index <path or URL>\n"
    assert shop.sha() == shop.sha("main")


def test_what_cannot_be_undone_is_not_done_without_an_answer(kb, shop):
    kb("index", shop.folder)
    code, _, err = kb("repo", "remove", "shop")
    assert code == 2
    assert err.endswith("hint: repeat the command with --yes\n")
    assert kb("db", "reset")[0] == 2
    assert kb("repo", "list")[1].startswith("shop  ")


def test_reset_erases_everything_and_the_next_index_begins_anew(kb, shop):
    kb("index", shop.folder)
    assert kb("db", "reset", "--yes")[0] == 0
    code, out, _ = kb("index", shop.folder)
    assert (code, out.startswith("indexed ")) == (0, True)


def test_an_empty_database_is_migrated_by_itself_and_db_migrate_finds_it_current(kb):
    kb("db", "reset", "--yes")
    document = _document(kb("db", "status", "--json"), "kb.db.status/1")
    assert document["schema_state"]["relation"] == "empty"
    assert kb("repo", "list")[0] == 0
    assert kb("db", "migrate")[1].endswith(": already current\n")


def test_a_server_of_the_settings_is_not_kbs_to_start_or_stop(kb):
    for name in ("start", "stop"):
        code, _, err = kb("db", name)
        assert code == 2
        assert "hint: unset KB_DB_URL" in err


def test_a_folder_that_is_no_repository_exits_5(kb, tmp_path):
    (tmp_path / "plain").mkdir()
    code, out, err = kb("index", tmp_path / "plain")
    assert (code, out) == (5, "")
    assert err.startswith("kb: error: ")


def test_a_database_that_cannot_be_reached_exits_4_and_never_prints_the_password(kb, shop):
    code, out, err = kb("index", shop.folder, "--db-url", "postgresql://kb:hush@127.0.0.1:1/kb")
    assert (code, out) == (4, "")
    assert "hush" not in err
    assert "127.0.0.1" in err


@pytest.mark.parametrize("url", ["ext::sh -c true", "--upload-pack=true", "http://example.org/x.git"])
def test_an_argument_that_is_no_repository_kb_would_open_is_refused(kb, url):
    code, out, err = kb("index", "--", url)
    assert code in {2, 5}
    assert out == ""
    assert err.startswith("kb: error: ")


def test_ctrl_c_during_an_index_exits_130_and_leaves_nothing_half_done(kb, shop, tmp_path):
    for number in range(60):
        shop.write(f"shop/m{number}.py", ORDERS.replace("Order", f"Order{number}") * 20)
    shop.commit()
    script = (
        "import os, signal, sys\n"
        "import kb.cli.progress as progress\n"
        "class Interrupting(progress.TerminalProgress):\n"
        "    def __call__(self, stage, done, total=None):\n"
        "        if stage != 'database':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "progress.TerminalProgress = Interrupting\n"
        "from kb.cli.main import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "index", str(shop.folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"KB_JOBS": "2"},
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    document = _document(kb("status", "--json"), "kb.status/1")
    assert [repository["snapshots"] for repository in document["repositories"]] in ([], [[]])
    assert kb("index", shop.folder)[1].startswith("indexed ")


def test_progress_is_not_shown_where_stderr_is_no_terminal(kb, shop):
    assert kb("index", shop.folder)[2] == ""


def test_the_demo_indexes_shows_a_unit_and_says_what_to_type_next(kb):
    # The demo reads this very repository at HEAD: what it shows is whatever HEAD holds.
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, root / "scripts" / "demo.py"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "$ kb index .\nindexed " in done.stdout
    assert "symbol:kb.errors.NotFoundError" in done.stdout
    assert "src/kb/errors.py:" in done.stdout
    assert "What to type next" in done.stdout


def test_the_working_tree_is_indexed_where_it_is_asked_for(kb, shop):
    shop.write("shop/refunds.py", "def refund():\n    return 1\n")
    document = _document(kb("index", shop.folder, "--worktree", "--json"), "kb.index/1")
    assert document["sha"].startswith("worktree:")
    assert document["dirty"] == []
    shown = _document(kb("show", "refund", "--sha", "worktree", "--json"), "kb.show/1")
    assert {place["sha"] for unit in shown["units"] for place in unit["provenance"]} == {document["sha"]}
    assert kb("index", shop.folder, "--worktree", "--sha", "HEAD~1")[0] == 2


def test_backfill_seals_the_past_and_says_how_much_was_new(kb, shop):
    start = shop.sha()
    for number in range(3):
        shop.write("shop/more.py", f"x = {number}\n").commit()
    first = _document(kb("backfill", shop.folder, "--since", start, "--json"), "kb.backfill/1")
    assert (first["repository"], first["commits"], first["sealed"], first["already"]) == ("shop", 4, 4, 0)
    code, out, err = kb("backfill", shop.folder, "--since", start)
    assert (code, out, err) == (0, "shop: 0 commits indexed, 4 already were\n", "")
    assert kb("backfill", shop.folder, "--since", "no-such")[0] == 3


def test_watching_once_indexes_what_is_new(kb, shop):
    code, out, err = kb("watch", shop.folder, "--once")
    assert (code, err) == (0, "")
    assert out.startswith(f"indexed {shop.sha()[:12]}: ")
    assert kb("watch", shop.folder, "--once", "--branch", "absent")[0] == 3


def test_ctrl_c_ends_a_watch_with_130_and_leaves_what_was_sealed(kb, shop):
    command = [sys.executable, "-m", "kb.cli.main", "watch", str(shop.folder), "--interval", "0.1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert watching.stdout.readline().startswith(f"indexed {shop.sha()[:12]}: ")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert err.strip() == "kb: error: interrupted; what was sealed before is unchanged"
    status = _document(kb("status", "--json"), "kb.status/1")
    assert [snapshot["sha"] for snapshot in status["repositories"][0]["snapshots"]] == [shop.sha()]


def test_hooks_are_installed_shown_and_removed(kb, shop):
    code, out, err = kb("hook", "install", shop.folder, "--only", "post-commit")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["post-commit", "calls", "kb"],
        ["post-merge", "-"],
        ["post-receive", "-"],
    ]
    hook = shop.folder / ".git" / "hooks" / "post-commit"
    assert f"kb-hook {Path(sys.executable).with_name('kb')} HEAD" in hook.read_text()
    document = _document(kb("hook", "status", shop.folder, "--json"), "kb.hook.status/1")
    assert [one["installed"] for one in document["hooks"]] == [True, False, False]
    assert kb("hook", "remove", shop.folder)[0] == 0
    assert not hook.exists()
    assert kb("hook", "install", shop.folder, "--only", "pre-commit")[0] == 2


def test_gc_says_what_it_would_drop_and_then_drops_it(kb, shop):
    old = shop.sha()
    kb("index", shop.folder)
    shop.write("shop/orders.py", "x = 1\n").commit()
    kb("index", shop.folder)
    policy = ("--keep-last", "0", "--all-ages")
    planned = _document(kb("gc", *policy, "--dry-run", "--json"), "kb.gc/1")
    assert (planned["dropped"], planned["kept"], planned["dry_run"]) == ([["shop", old]], 1, True)
    code, out, err = kb("gc", *policy)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["dropped 1 snapshot; 1 stays", f"  shop  {old[:12]}"]
    assert kb("gc", "--all-ages", "--newer-than", "3")[0] == 2
    assert kb("gc", "--repo", "absent")[0] == 3


@pytest.mark.parametrize("name", ["", " ", "-x", "a\nb", "\x1b[31m", " a", "x" * 201])
def test_a_name_that_no_command_line_could_say_is_refused(kb, shop, name):
    assert kb("index", shop.folder, f"--name={name}")[0] == 2
    assert kb("index", shop.folder)[0] == 0
    code, _, err = kb("repo", "rename", "shop", "--", name)
    assert code == 2
    assert "is no name for a repository" in err
    assert kb("repo", "list")[1].startswith("shop ")


def test_a_folder_whose_name_is_none_gets_one_that_is(kb, tmp_path):
    repo = GitRepo(tmp_path / "-odd\n\x1bname").write("a.py", "x = 1\n").commit()
    assert kb("index", repo.folder)[0] == 0
    assert [
        row["name"] for row in _document(kb("repo", "list", "--json"), "kb.repo.list/1")["repositories"]
    ] == ["odd__name"]


@pytest.mark.parametrize("target", ["", "  "])
def test_a_blank_target_shows_nothing(kb, shop, target):
    kb("index", shop.folder)
    assert kb("show", target)[0] == 2


def test_show_leads_with_the_definition_and_leaves_the_passage_for_last(kb, shop):
    kb("index", shop.folder)
    units = _document(kb("show", "shop/orders.py:10", "--json"), "kb.show/1")["units"]
    kinds = [unit["kind"] for unit in units]
    assert kinds[0] == "symbol"
    assert kinds.index("passage") == len(kinds) - kinds.count("passage")


@pytest.mark.parametrize(
    "option",
    ["--root=../elsewhere", "--root=/etc", "--include=", "--exclude= ", "--include=a/**/b/**/c/**/d/**"],
)
def test_a_root_or_pattern_that_can_mean_nothing_is_a_usage_error(kb, shop, option):
    assert kb("index", shop.folder, option)[0] == 2
    assert "nothing is indexed yet" in kb("status")[1]


def test_a_blank_repository_is_a_usage_error(kb):
    assert kb("index", "")[0] == 2


def test_seconds_are_a_number_in_json(kb, shop):
    assert isinstance(_document(kb("index", shop.folder, "--json"), "kb.index/1")["seconds"], float)
