from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.mcp.server import build_server
from kb.retrieve.library import Library
from kb.retrieve.select import select_snapshots
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.search import vectors
from tests.gitrepo import GitRepo
from tests.indexing import TestParts
from tests.mcp.conftest import Asked, make_searchable

# Each list under the name by which its items are known.
LISTS = {
    "get_knowledge": ({"target": "shop/app.py"}, "units", lambda item: item["key"]),
    "list_entities": ({}, "units", lambda item: item["key"]),
    "list_contracts": ({}, "units", lambda item: item["key"]),
    "find_provenance": ({"file": "shop/models.py", "line": 24}, "units", lambda item: item["key"]),
    "search_knowledge": ({"query": "order total price"}, "hits", lambda item: item["unit"]["key"]),
    "dependents": (
        {"target": "shop.models"}, "dependents", lambda item: (item["relation"], item["unit"]["key"])
    ),
    "diff_knowledge": ({}, "changes", lambda item: (item["change"], item["key"])),
    "history": ({"key": "entity:shop.models.Item"}, "moments", lambda item: item["sha"]),
}  # fmt: skip


def tokens(tokenizer, result):
    sent = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    text = "".join(block.text for block in result.content)
    return sum(len(tokenizer.encode(part, add_special_tokens=False).ids) for part in (sent, text))


def read_through(asked, tokenizer, tool, budget, limit=None):
    """Every page of a list, with what each page promises held against what follows."""
    arguments, field, name = LISTS[tool]
    if limit is not None and tool not in {"find_provenance", "get_knowledge", "search_knowledge"}:
        arguments = {**arguments, "limit": limit}
    pages, cursor = [], None
    while True:
        result = asked.result(
            tool, **arguments, token_budget=budget, **({"cursor": cursor} if cursor else {})
        )
        assert not result.is_error, result.content[0].text
        assert tokens(tokenizer, result) <= budget
        answer = result.structured_content
        pages.append([name(item) for item in answer[field]])
        cursor = answer.get("next_cursor")
        assert (cursor is None) == (answer["omitted"] == 0)
        assert sum(map(len, pages)) + answer["omitted"] == answer["total"]
        if cursor is None:
            return pages
        assert pages[-1], "a page without units that is not the last one"


@pytest.mark.parametrize("tool", LISTS)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budget=st.integers(1000, 12_000))
def test_no_budget_is_exceeded_and_reading_through_yields_each_unit_once(
    tool, budget, server, tokenizer, indexed
):
    LISTS["diff_knowledge"][0]["base"] = indexed.first
    pages = read_through(Asked(server), tokenizer, tool, budget)
    whole = read_through(Asked(server), tokenizer, tool, 50_000)
    items = [item for page in pages for item in page]
    assert items == [item for page in whole for item in page]
    assert len(set(items)) == len(items)


def test_a_limit_bounds_a_page_and_the_cursor_goes_on(asked, tokenizer):
    pages = read_through(asked, tokenizer, "list_contracts", 50_000, limit=1)
    assert pages == [["api:GET /health"], ["api:GET /items"], ["api:POST /orders"]]


def test_a_unit_that_alone_is_too_large_is_cut_and_says_what_was_cut(asked, tokenizer):
    result = asked.result("list_entities", name="Wide", token_budget=1000)
    assert tokens(tokenizer, result) <= 1000
    (unit,) = result.structured_content["units"]
    assert "body" in unit["shortened"]
    assert unit["provenance"]
    (whole,) = asked.answer("list_entities", name="Wide", token_budget=50_000)["units"]
    assert len(whole["body"]["fields"]) == 120
    assert "shortened" not in whole


def test_source_that_is_too_long_is_cut_at_a_line_and_says_where_to_go_on(asked, indexed, tokenizer):
    from kb.mcp.rendering import undelimited

    result = asked.result("get_source", file="shop/wide.py", token_budget=1000)
    assert tokens(tokenizer, result) <= 1000
    (excerpt,) = result.structured_content["excerpts"]
    lines = indexed.repo.git("show", f"{indexed.second}:shop/wide.py").split("\n")
    assert undelimited(excerpt["source"]) == "\n".join(lines[: excerpt["cut_after"]])


def test_a_cursor_reads_the_snapshot_that_it_began_with(asked, indexed):
    first = asked.answer("list_contracts", sha=indexed.first, limit=1)
    after = asked.answer("list_contracts", sha=indexed.first, limit=1, cursor=first["next_cursor"])
    assert after["answered_from"]["sha"] == indexed.first
    assert after["units"][0]["key"] == "api:GET /orders/{order_id}"


def test_a_cursor_of_another_question_or_of_nobody_is_refused(asked):
    cursor = asked.answer("list_contracts", limit=1)["next_cursor"]
    assert "another question" in asked.error("list_contracts", method="GET", cursor=cursor)
    assert "no cursor" in asked.error("list_contracts", cursor="AAAA")
    assert "no cursor" in asked.error("list_contracts", cursor="ÄÖÜ")


LONG = "\u0416\u4e2d" * 40
"""A name that costs more tokens than characters, within the 255 bytes of a file's name."""
FOLDER = "/".join([LONG] * 6)
SYMBOL = "Z\u0444" * 6_000


@pytest.fixture
def swollen(database, tmp_path):
    """A repository in which all that a status or a verdict tells is as long as it can be."""
    home = tmp_path / "home"
    home.mkdir()
    parts = TestParts(database, home)
    repo = GitRepo(tmp_path / LONG / LONG / LONG)
    methods = "\n".join(f"    {SYMBOL}{number} = {number}" for number in range(60))
    repo.write(f"{FOLDER}/good.py", f"class {SYMBOL}:\n{methods}\n")
    for number in range(30):
        repo.write(f"{FOLDER}/bad{number}.py", "def (:\n")
    repo.commit()
    index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
    make_searchable(database)
    (snapshot,) = select_snapshots(parts, None, None)
    with database.writer() as connection:
        connection.autocommit = True
        for number in range(20):
            model = vectors.put_model(connection, f"openai:{LONG * 20}{number}", 16, None)
            vectors.mark_embedded(connection, snapshot.snapshot_id, model)
    return Asked(build_server(Library(parts, cwd=tmp_path)))


@pytest.mark.parametrize("budget", [1_000, 2_000, 6_000, 20_000])
def test_answers_without_pages_stay_within_their_budget_whatever_a_repository_holds(
    swollen, tokenizer, budget
):
    status = swollen.result("status", token_budget=budget)
    assert not status.is_error, status.content[0].text
    assert tokens(tokenizer, status) <= budget
    told = status.structured_content
    assert "first_gaps" in told["shortened"]
    assert told["gaps"]
    assert (told["files"], told["snapshot_count"]) == (31, 1)
    assert len(told.get("embedded_with", ())) + told.get("more_models", 0) == 20

    claim = " ".join(f"{LONG}{number}" for number in range(40))[:4_000]
    arguments = {"file": f"{FOLDER}/good.py", "lines": "1-61", "sha": "HEAD", "claim": claim}
    verdict = swollen.result("verify_citation", **arguments, token_budget=budget)
    assert not verdict.is_error, verdict.content[0].text
    assert tokens(tokenizer, verdict) <= budget
    told = verdict.structured_content
    assert told["outcome"] == "verified"
    assert "units" in told["shortened"]
    assert len(told.get("units", ())) + told["more_units"] >= 2
    assert len(told.get("claim_words_missing") or ()) + told.get("more_words_missing", 0) >= 40


def test_an_answer_without_pages_that_fits_is_whole(asked, indexed):
    for tool, arguments in (
        ("status", {}),
        ("verify_citation", {"file": "shop/models.py", "lines": "9-11", "sha": indexed.first}),
    ):
        answer = asked.answer(tool, **arguments)
        assert "shortened" not in answer
        assert not any(name.startswith("more_") for name in answer)
        assert asked.answer(tool, **arguments, token_budget=1_000) == answer
