"""Names as agents remember them: by half, in another case, misspelled, below a prefix they do not know."""

from __future__ import annotations

import pytest


def keys(answer):
    return [unit["key"] for unit in answer["units"]]


@pytest.mark.parametrize(
    ("asked_for", "near"),
    [
        ("order.TOTAL", "symbol:shop.models.Order.total"),
        ("Recipt", "entity:shop.models.Receipt"),
        ("shop.models.Order.totals", "symbol:shop.models.Order.total"),
        ("store.models.Order", "entity:shop.models.Order"),
        ("GET /itms", "api:GET /items"),
        ("shop/model.py", "shop/models.py"),
        ("lib/models.py", "shop/models.py"),
        ("shop/", "shop/models.py"),
    ],
)
def test_what_nothing_is_called_is_answered_with_what_was_meant(asked, asked_for, near):
    error = asked.error("get_knowledge", target=asked_for)
    assert "unknown target" in error
    assert near in error.split("near matches: ")[1].split(", ")


def test_what_is_called_most_like_a_bare_name_comes_first(asked):
    error = asked.error("get_knowledge", target="Recipt")
    first = error.split("near matches: ")[1].split(", ")[0]
    assert first in ("symbol:shop.models.Receipt", "entity:shop.models.Receipt")


def test_what_is_like_nothing_is_not_answered_with_something(asked):
    assert "no name is near it" in asked.error("get_knowledge", target="qqq_wwwxyz")
    assert "no name is near it" in asked.error("get_knowledge", target="日本語 😀")


def test_a_blank_is_no_target(asked):
    assert "a blank names nothing" in asked.error("get_knowledge", target="  ")


def test_a_route_is_found_by_its_end(asked, indexed):
    answer = asked.answer("get_knowledge", target="GET /{order_id}", sha=indexed.first, kinds=["contract"])
    assert answer["matched"] == "route"
    assert keys(answer) == ["api:GET /orders/{order_id}"]


def test_contracts_are_listed_by_the_beginning_of_their_path_else_by_a_part_of_it(asked, indexed):
    begun = asked.answer("list_contracts", path="/orders", sha=indexed.first)
    assert keys(begun) == ["api:GET /orders/{order_id}", "api:POST /orders"]
    inside = asked.answer("list_contracts", path="/{order_id}", method="GET", sha=indexed.first)
    assert keys(inside) == ["api:GET /orders/{order_id}"]
    assert asked.answer("list_contracts", path="/{order_id}", method="POST", sha=indexed.first)["units"] == []


def test_a_name_of_several_keys_has_the_history_of_one_and_names_the_others(asked):
    answer = asked.answer("history", key="Receipt")
    assert {answer["key"], *answer["also_called_so"]} == {
        "entity:shop.models.Receipt", "symbol:shop.models.Receipt",
    }  # fmt: skip


def test_a_line_beyond_the_end_is_told_from_one_that_nothing_stands_on(asked):
    beyond = asked.answer("find_provenance", file="README.md", line=4_000)
    assert beyond["note"] == "nothing there: the file has 7 lines"


def test_on_the_line_of_a_method_the_method_comes_before_its_class(asked, indexed):
    text = indexed.repo.git("show", f"{indexed.second}:shop/models.py").split("\n")
    line = text.index("    def total(self) -> int:") + 1
    answer = asked.answer("find_provenance", file="shop/models.py", line=line)
    assert keys(answer)[0] == "symbol:shop.models.Order.total"
    owner = next(unit for unit in answer["units"] if unit["key"] == "symbol:shop.models.Order")
    assert owner["provenance"][0]["start_line"] == line


def test_of_many_places_a_list_shows_the_most_telling_and_says_how_many_more_there_are(asked):
    (unit,) = asked.answer("list_entities", name="shop.wide.Wide", token_budget=50_000)["units"]
    assert unit["provenance"][0]["role"] == "entity"
    assert len(unit["provenance"]) == 5
    places = asked.answer("get_source", target="entity:shop.wide.Wide", token_budget=50_000)
    assert places["total"] == 5 + unit["more_places"] == 121


def test_lines_that_only_the_file_covers_are_followed_by_their_text(asked, indexed):
    verdict = asked.answer("verify_citation", file="shop/models.py", lines="3-6", sha=indexed.first)
    assert (verdict["outcome"], verdict["now"]["start_line"]) == ("verified", 3)
    lines = len(indexed.repo.git("show", f"{indexed.first}:shop/app.py").split("\n"))
    whole = asked.answer("verify_citation", file="shop/app.py", lines=f"1-{lines}", sha=indexed.first)
    assert whole["outcome"] == "changed"


def test_a_kind_that_there_is_not_is_answered_with_the_kinds_that_there_are(asked):
    found = asked.answer("search_knowledge", query="order", kinds=["bogus"])
    assert any("; kinds here: " in note and "contract" in note for note in found["notes"])
    known = asked.answer("get_knowledge", target="shop.models.Order", kinds=["bogus"])
    assert "of these do: " in known["note"]
    assert "entity" in known["note"]
