"""What is indexed, edited or removed between two questions does not make an answer wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kb.mcp.server import build_server
from kb.retrieve.library import Library
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts
from tests.mcp.conftest import Asked
from tests.mcp.test_budget import tokens

FIRST = '''"""Module."""
import os


def first(x):
    # keeps the sign of x
    y = x + 1
    # done
    return y


def second(y):
    z = y * 2
    return z


def third(q):
    return q


LIMIT = 10
'''

SECOND = '''"""Module."""
import os
import sys


def newer(x):
    return os.getcwd() + sys.argv[x]


def first(x):
    # drops the sign of x
    # and is proud of it
    y = x + 1
    return y


def second(y):
    z = y * 3
    return z


LIMIT = 10
'''

LAST = SECOND.replace("LIMIT = 10", "LIMIT = 11") + "\n\ndef last():\n    return LIMIT\n"


class Moving:
    """A repository of three commits, of which some are indexed, with a server over it."""

    def __init__(self, parts: TestParts, repo: GitRepo, shas: list[str], asked: Asked) -> None:
        self.parts = parts
        self.repo = repo
        self.first, self.second, self.last = shas
        self.asked = asked

    def index(self, sha: str) -> None:
        index_repository(self.parts, IndexRequest(repo=str(self.repo.folder), commitish=sha, jobs=1))

    def verdict(self, lines: str, sha: str, against: str | None = None, **more: str):
        return self.asked.answer(
            "verify_citation", file="a.py", lines=lines, sha=sha, against=against or self.second, **more
        )


@pytest.fixture
def moving(server_url: str, template: str, tmp_path) -> Iterator[Moving]:
    (tmp_path / "home").mkdir()
    for database in fresh_database(server_url, template):
        parts = TestParts(database, tmp_path / "home")
        repo = GitRepo(tmp_path / "moving")
        shas = [
            repo.write("a.py", FIRST).write("notes.txt", "one\n\ntwo\n").commit("first").sha(),
            repo.write("a.py", SECOND)
            .write("b.py", "def third(q):\n    return q\n")
            .delete("notes.txt")
            .write("kept.txt", "one\n\ntwo\n")
            .commit("second")
            .sha(),
            repo.write("a.py", LAST).commit("last").sha(),
        ]
        found = Moving(parts, repo, shas, Asked(build_server(Library(parts, cwd=tmp_path))))
        found.index(shas[0])
        found.index(shas[2])
        yield found


def now(verdict):
    return verdict["now"]["file"], verdict["now"]["start_line"], verdict["now"]["end_line"]


def test_the_pages_of_a_diff_compare_the_same_two_snapshots_whatever_is_indexed_between_them(moving):
    question = {"base": moving.second, "limit": 1}
    page = moving.asked.answer("diff_knowledge", **question)
    assert page["base"] == moving.first
    whole = moving.asked.answer("diff_knowledge", base=moving.first, token_budget=50_000)
    read = [(one["change"], one["key"]) for one in page["changes"]]
    moving.index(moving.second)
    while "next_cursor" in page:
        page = moving.asked.answer("diff_knowledge", **question, cursor=page["next_cursor"])
        assert page["base"] == moving.first
        read += [(one["change"], one["key"]) for one in page["changes"]]
    assert read == [(one["change"], one["key"]) for one in whole["changes"]]
    assert moving.asked.answer("diff_knowledge", **question)["base"] == moving.second


def test_a_page_of_a_history_in_which_more_is_indexed_by_now_is_refused(moving):
    question = {"key": "symbol:a.LIMIT", "limit": 1}
    page = moving.asked.answer("history", **question)
    assert (page["commits"], page["omitted"]) == (2, 1)
    assert moving.asked.answer("history", **question, cursor=page["next_cursor"])["omitted"] == 0
    moving.index(moving.second)
    assert "other commits are indexed" in moving.asked.error(
        "history", **question, cursor=page["next_cursor"]
    )


def test_the_units_of_a_citation_are_those_of_the_cited_commit(moving):
    told = moving.verdict("7", moving.first)
    assert "symbol:a.first" in told["units"]
    assert "symbol:a.newer" not in told["units"]  # which stands on that line at HEAD
    claim = moving.verdict("5-9", moving.first, claim="newer calls getcwd of argv")
    assert {"newer", "getcwd", "argv"} <= set(claim["claim_words_missing"])
    both = moving.verdict("9-14", moving.first)["units"]
    assert {"symbol:a.first", "symbol:a.second"} <= set(both)


def test_where_no_snapshot_has_the_cited_file_its_units_are_not_told_and_the_verdict_says_so(moving):
    told = moving.verdict("10-15", moving.second, against="HEAD")
    assert told["outcome"] == "verified"
    assert "units" not in told
    assert told["note"].endswith(f"--sha {moving.second[:12]}")
    assert told["note"].startswith("the units on the lines are not known; run: kb index ")
    moving.index(moving.second)
    told = moving.verdict("10-15", moving.second, against="HEAD")
    assert "symbol:a.first" in told["units"]
    assert "note" not in told


def test_lines_inside_a_span_whose_comments_moved_are_followed_to_where_they_stand(moving):
    for line, text in ((7, "    y = x + 1"), (9, "    return y")):
        assert FIRST.split("\n")[line - 1] == text
        told = moving.verdict(str(line), moving.first)
        file, start, end = now(told)
        assert (told["outcome"], file, start) == ("moved", "a.py", end)
        assert SECOND.split("\n")[start - 1] == text


def test_a_comment_that_was_edited_is_changed_though_its_code_is_the_same(moving):
    told = moving.verdict("6", moving.first)
    assert (told["outcome"], now(told)) == ("changed", ("a.py", 10, 14))
    quoted = moving.verdict("5-9", moving.first, quote="# keeps the sign")
    assert (quoted["outcome"], quoted["quote_found"], now(quoted)) == ("changed", True, ("a.py", 10, 14))
    held = moving.verdict("5-9", moving.first, quote="def first(x):")
    assert (held["outcome"], held["quote_found"]) == ("moved", True)
    assert "other comments" in held["reason"]


def test_a_file_that_was_renamed_is_followed_whatever_it_is_written_in(moving):
    told = moving.asked.answer(
        "verify_citation", file="notes.txt", lines="3", sha=moving.first, against=moving.second
    )
    assert (told["outcome"], now(told)) == ("moved", ("kept.txt", 3, 3))


def test_of_definitions_of_one_name_the_edited_one_is_where_the_cited_one_was(moving):
    twice = "def f(x):\n    return {}\n\n\ndef f(y):\n    return {}\n\n\ndef f(z):\n    return {}\n"
    moving.repo.write("a.py", twice.format(1, 2, 3))
    before = moving.repo.commit("three").sha()
    after = moving.repo.write("a.py", twice.format(1, 2, 4)).commit("the third").sha()
    told = moving.verdict("9-10", before, after)
    assert (told["outcome"], now(told)) == ("changed", ("a.py", 9, 10))


def test_a_blank_quote_is_refused(moving):
    assert "blank quote" in moving.asked.error(
        "verify_citation", file="a.py", lines="1", sha=moving.first, quote="  \n"
    )


def test_a_range_of_lines_is_known_by_all_that_stands_on_it(moving):
    keys = {
        unit["key"]
        for unit in moving.asked.answer("get_knowledge", target="a.py:1-30", kinds=["symbol"])["units"]
    }
    assert {"symbol:a.newer", "symbol:a.first", "symbol:a.second", "symbol:a.LIMIT"} <= keys


def test_a_repository_that_is_back_is_read_again(moving):
    away = moving.repo.folder.with_name("away")
    moving.repo.folder.rename(away)
    gone = moving.asked.answer("get_knowledge", target="a.first", repo="moving")
    assert "cannot be read" in gone["answered_from"]["notice"]
    assert "cannot be read" in moving.asked.error("get_source", target="a.first", repo="moving")
    away.rename(moving.repo.folder)
    back = moving.asked.answer("get_knowledge", target="a.first", repo="moving")
    assert back["answered_from"]["head_sha"] == moving.last
    assert "notice" not in back["answered_from"]
    assert moving.asked.answer("get_source", target="a.first", repo="moving")["excerpts"]


def test_repositories_are_paged_within_the_budget_and_a_cursor_of_another_list_is_refused(moving, tokenizer):
    for number in range(12):
        repo = (
            GitRepo(moving.repo.folder.with_name(f"other_{number:02}")).write("a.py", "A = 1\n").commit("one")
        )
        index_repository(moving.parts, IndexRequest(repo=str(repo.folder), jobs=1))
    names, page = [], {"next_cursor": None}
    while "next_cursor" in page:
        result = moving.asked.result("list_repositories", token_budget=1000, cursor=page["next_cursor"])
        page = result.structured_content
        assert tokens(tokenizer, result) <= 1000
        names += [one["name"] for one in page["repositories"]]
        assert (page["total"], page["omitted"]) == (13, 13 - len(names))
    assert names == ["moving", *(f"other_{number:02}" for number in range(12))]
    cursor = moving.asked.answer("list_repositories", token_budget=1000)["next_cursor"]
    repo = GitRepo(moving.repo.folder.with_name("newer")).write("a.py", "A = 1\n").commit("one")
    index_repository(moving.parts, IndexRequest(repo=str(repo.folder), jobs=1))
    assert "another question" in moving.asked.error("list_repositories", token_budget=1000, cursor=cursor)
