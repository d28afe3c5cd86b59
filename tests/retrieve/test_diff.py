from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from kb.cli.main import kb
from kb.cli.render.diff import diff_lines, diff_markdown, history_lines
from kb.errors import NotFoundError
from kb.retrieve.compatibility import judge_standing
from kb.retrieve.diff import diff_knowledge
from kb.retrieve.history import history
from kb.retrieve.library import Library
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index
from tests.mcp.conftest import Indexed
from tests.mcp.running import environment
from tests.mcp.shop import change, shop


@pytest.fixture(scope="module")
def shops(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    folder = tmp_path_factory.mktemp("diff")
    (folder / "home").mkdir()
    for database in fresh_database(server_url, template):
        parts = TestParts(database, folder / "home")
        repo = shop(folder / "shop")
        first = repo.sha()
        index(parts, repo)
        second = change(repo).sha()
        index(parts, repo)
        repo.write("shop/money.py", "# only a comment\n" + repo.git("show", "HEAD:shop/money.py") + "\n")
        repo.commit("@everyone: <b>comments</b> | only")
        index(parts, repo)
        yield Indexed(parts, repo, first, second)


@pytest.fixture
def library(shops, tmp_path):
    return Library(shops.parts, cwd=tmp_path)


def told(found, kind=None):
    return {one.key: one.change for one in found.changes if kind in (None, one.kind)}


def test_what_was_added_removed_and_changed_is_told_by_kind_and_key(library, shops):
    found = diff_knowledge(library, shops.first, shops.second, repo=None)
    symbols = told(found, "symbol")
    assert symbols["symbol:shop.app.health"] == "added"
    assert symbols["symbol:shop.app.read_order"] == "removed"
    assert symbols["symbol:shop.app.list_items"] == "changed"
    assert "symbol:shop.app.create_order" not in symbols
    assert told(found, "contract") == {
        "api:GET /items": "changed",
        "api:GET /orders/{order_id}": "removed",
        "api:GET /health": "added",
    }
    assert found.counts["contract"] == {"changed": 1, "removed": 1, "added": 1}


def test_verdicts_say_why(library, shops):
    found = diff_knowledge(library, shops.first, shops.second, repo=None, kinds=["contract", "entity"])
    by_key = {one.key: one for one in found.changes}
    assert "new required parameter query category" in by_key["api:GET /items"].reasons
    assert "new field weight without a default" in by_key["entity:shop.models.Item"].reasons
    assert by_key["api:GET /health"].compatibility == "compatible"
    assert found.breaking == 3


def test_each_side_is_shown_where_it_stands(library, shops):
    found = diff_knowledge(library, shops.first, shops.second, repo=None, kinds=["contract"])
    removed = next(one for one in found.changes if one.change == "removed")
    assert removed.after == ()
    assert all(place.sha == shops.first for place in removed.before)
    lines = shops.repo.git("show", f"{shops.first}:shop/app.py").split("\n")
    handler = next(place for place in removed.before if place.role == "handler")
    assert lines[handler.start_line - 1].startswith(("@app.get", "def read_order"))


def test_a_comment_changes_nothing_and_the_way_back_is_the_mirror_image(library, shops):
    same = diff_knowledge(library, shops.second, "HEAD", repo=None)
    assert told(same) == {}
    assert same.notes == ("nothing there: both snapshots know the same",)
    forth = told(diff_knowledge(library, shops.first, shops.second, repo=None))
    back = told(diff_knowledge(library, shops.second, shops.first, repo=None))
    turned = {"added": "removed", "removed": "added"}
    assert back == {key: turned.get(what, what) for key, what in forth.items()}


def test_a_file_that_moves_with_its_meaning_is_told_as_moved(database, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    parts = TestParts(database, home)
    repo = (
        GitRepo(tmp_path / "r").write("docs/a.md", "# Guide\n\nRead me.\n").write("x.py", "A = 1\n").commit()
    )
    base = repo.sha()
    index(parts, repo)
    repo.write("src/x.py", "A = 1\n").delete("x.py").write("src/__init__.py").commit()
    index(parts, repo)
    found = diff_knowledge(Library(parts, cwd=tmp_path), base, "HEAD", repo=None, kinds=["symbol", "module"])
    assert {one.change for one in found.changes} <= {"moved", "added", "removed", "changed"}
    for one in found.changes:
        if one.change == "moved":
            assert one.before[0].file != one.after[0].file


def test_an_unindexed_side_is_answered_by_its_ancestor_and_a_note_says_so(library, shops):
    tree = shops.repo.git("rev-parse", "HEAD^{tree}")
    ahead = shops.repo.git("commit-tree", tree, "-p", "HEAD", "-m", "ahead")
    found = diff_knowledge(library, shops.first, ahead, repo=None)
    assert found.head == shops.repo.sha()
    assert any("nearest indexed ancestor" in note for note in found.notes)
    with pytest.raises(NotFoundError):
        diff_knowledge(library, "nowhere", None, repo=None)


def test_the_life_of_a_key_names_the_commits_and_the_reasons(library, shops):
    found = history(library, "entity:shop.models.Item", repo=None)
    assert [(one.event, one.sha) for one in found.moments] == [
        ("changed", shops.second),
        ("added", shops.first),
    ]
    assert found.moments[0].compatibility == "breaking"
    assert found.moments[0].provenance[0].sha == shops.second
    assert found.commits == 3
    assert history(library, "shop.models.Item", repo=None).key in {
        "symbol:shop.models.Item", "entity:shop.models.Item",
    }  # fmt: skip


def test_markdown_for_a_pull_request_formats_nothing_that_the_repository_wrote(library, shops):
    text = "\n".join(diff_markdown(diff_knowledge(library, shops.first, "HEAD", repo=None)))
    assert "**3 breaking**" in text
    assert "- removed `api:GET /orders/{order_id}`: route removed" in text
    assert "-&#62; " in text
    assert "&\\#" not in text  # an escape that was escaped again shows as such
    assert "<details><summary>" in text
    assert "| contract | 1 | 1 | 1 | 0 |" in text


def test_lines_for_a_person_say_the_same(library, shops):
    lines = "\n".join(diff_lines(diff_knowledge(library, shops.first, "HEAD", repo=None)))
    assert "- api:GET /orders/{order_id} [breaking]" in lines
    assert "shop/app.py:" in lines
    told_lines = "\n".join(history_lines(history(library, "api:GET /health", repo=None)))
    assert "+ " in told_lines
    assert shops.second[:12] in told_lines


def test_the_commands_print_one_document_and_fail_on_what_breaks(shops, monkeypatch):
    for name, value in environment(shops).items():
        if name.startswith("KB_"):
            monkeypatch.setenv(name, value)
    where = ["--repo", "shop"]
    done = CliRunner().invoke(
        kb, ["diff", shops.first, shops.second, *where, "--json", "--fail-on-breaking"], standalone_mode=False
    )
    document = json.loads(done.stdout)
    assert document["schema"] == "kb.diff/1"
    assert document["breaking"] == 3
    assert done.return_value == 1 or done.exit_code == 1
    log = CliRunner().invoke(kb, ["log", "api:GET /health", *where, "--json"])
    assert [moment["event"] for moment in json.loads(log.stdout)["moments"]] == ["added"]
    markdown = CliRunner().invoke(kb, ["diff", shops.first, *where, "--markdown"])
    assert markdown.stdout.startswith("### Knowledge diff")


def edited(parts, repo, **files):
    """The diff from the commit that is there to one with other files."""
    base = repo.sha()
    index(parts, repo)
    for name, text in files.items():
        repo.write(name.replace("__", "/") + (".toml" if name == "pyproject" else ".py"), text)
    repo.commit()
    index(parts, repo)
    return diff_knowledge(Library(parts, cwd=parts.home), base, "HEAD", repo=None)


@pytest.fixture
def parts(database, tmp_path):
    (tmp_path / "home").mkdir()
    return TestParts(database, tmp_path / "home")


PROJECT = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["ruff>=0.8", "httpx"]\n'
ROUTES = """from flask import Flask

app = Flask(__name__)


@app.get("/a")
def a():
    return "a"


@app.get("/b")
def b():
    return "b"
"""
ONE_ROUTE = ROUTES.partition('\n\n\n@app.get("/b")')[0] + "\n"


def test_a_changed_artifact_says_from_what_to_what_in_every_form(parts, tmp_path):
    repo = (
        GitRepo(tmp_path / "r").write("pyproject.toml", PROJECT).write("requirements.txt", "ruff\n").commit()
    )
    found = edited(parts, repo, pyproject=PROJECT.replace("ruff>=0.8", "ruff>=0.9"))
    (one,) = [change for change in found.changes if change.key == "dependency:ruff"]
    assert [(d.before, d.after) for d in one.details] == [(">=0.8", ">=0.9")]
    assert one.details[0].field.endswith(".specifier")
    assert one.after[0].file == "pyproject.toml"  # not the file that says what it said before
    lines = "\n".join(diff_lines(found))
    assert "    declared[pyproject].specifier: >=0.8 -> >=0.9\n" in lines
    assert "pyproject.toml:4@" in lines
    assert "specifier: &#62;=0.8 -&#62; &#62;=0.9" in "\n".join(diff_markdown(found))
    assert found.model_dump()["changes"][0]["details"][0]["after"] == ">=0.9"


@pytest.mark.parametrize(
    ("name", "where"),
    [("tests__test_app", "tests"), ("pkg__conftest", "tests"), ("examples__one__app", "examples")],
)
def test_a_route_that_leaves_a_test_or_an_example_breaks_nobody(parts, tmp_path, name, where):
    path = name.replace("__", "/") + ".py"
    repo = GitRepo(tmp_path / "r").write(path, ROUTES).write("shop/app.py", "X = 1\n").commit()
    found = edited(parts, repo, **{name: ONE_ROUTE})
    (route,) = [change for change in found.changes if change.kind == "contract"]
    assert (route.change, route.compatibility, route.stands_in) == ("removed", None, where)
    assert found.breaking == 0
    assert found.aside == len(found.changes)
    assert any(line.endswith(f"[in {where}]") for line in diff_lines(found))
    markdown = "\n".join(diff_markdown(found))
    assert "breaking" not in markdown
    assert "in tests and examples, not judged</summary>" in markdown


def test_a_route_of_what_is_offered_still_breaks_when_tests_change_beside_it(parts, tmp_path):
    repo = GitRepo(tmp_path / "r").write("shop/app.py", ROUTES).write("tests/test_app.py", ROUTES).commit()
    found = edited(parts, repo, shop__app=ONE_ROUTE, tests__test_app=ONE_ROUTE)
    assert found.breaking == 1
    assert found.changes[0].before[0].file == "shop/app.py"
    assert [one.stands_in for one in found.changes] == sorted(
        (one.stands_in for one in found.changes), key=lambda where: where is not None
    )


@pytest.mark.parametrize(
    ("was_in", "is_in", "verdict", "reason"),
    [
        (None, "tests", "breaking", "stands in tests only now"),
        ("examples", None, "compatible", "stood in examples only"),
        ("tests", "examples", None, None),
    ],
)
def test_what_goes_over_to_tests_is_gone_and_what_comes_from_there_is_new(was_in, is_in, verdict, reason):
    found = judge_standing("contract", {"path": "/a"}, {"path": "/a"}, was_in=was_in, is_in=is_in)
    assert found.compatibility == verdict
    assert reason is None or reason in found.reasons


def life(parts, key="symbol:shop.side.b"):
    found = history(Library(parts, cwd=parts.home), key, repo=None)
    return [(one.event, one.sha) for one in found.moments], found


def test_a_life_is_told_along_the_history_of_head_and_not_over_other_branches(parts, tmp_path):
    repo = GitRepo(tmp_path / "r").write("shop/__init__.py").write("shop/main.py", "A = 1\n").commit()
    index(parts, repo)
    repo.checkout("side", new=True).write("shop/side.py", "def b():\n    return 1\n")
    side = repo.commit("side").sha()
    index(parts, repo)
    repo.checkout("main").write("shop/main.py", "A = 2\n").commit("main")
    index(parts, repo)
    moments, found = life(parts)
    assert moments == []  # main never had it, so it did not lose it
    assert found.notes == ("left out: 1 indexed commit of other branches or rewritten history",)
    repo.checkout("side")
    assert life(parts)[0] == [("added", side)]
    repo.checkout("main").merge("side")
    index(parts, repo)
    assert life(parts)[0] == [("added", side)]  # the merge says what one of its sides said
    repo.git("revert", "--no-edit", "--mainline", "1", "HEAD")
    index(parts, repo)
    assert life(parts)[0] == [("removed", repo.sha()), ("added", side)]
    repo.checkout("apart", orphan=True).write("shop/main.py", "A = 3\n").commit("apart")
    index(parts, repo)
    assert life(parts)[0] == []


def test_without_git_a_life_is_told_by_date_and_says_so(parts, tmp_path):
    repo = GitRepo(tmp_path / "r").write("shop/__init__.py").write("shop/side.py", "def b(): ...\n").commit()
    index(parts, repo)
    (tmp_path / "r").rename(tmp_path / "away")
    moments, found = life(parts)
    assert [event for event, _ in moments] == ["added"]
    assert found.notes == ("git cannot be asked what comes before what: by date, all branches together",)
