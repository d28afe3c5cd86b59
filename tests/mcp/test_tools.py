from __future__ import annotations

import json
import re

import pytest

TOOLS = {
    "find_provenance", "get_knowledge", "search_knowledge", "get_source", "list_contracts", "list_entities",
    "list_events", "list_settings", "dependents", "diff_knowledge", "history", "verify_citation",
    "list_repositories", "status",
}  # fmt: skip


def keys(answer):
    return [unit["key"] for unit in answer["units"]]


def line_of(indexed, sha, path, text):
    """1-based number of the first line that holds the text, as git itself shows the file."""
    lines = indexed.repo.git("show", f"{sha}:{path}").split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_tools_are_those_of_the_design_read_only_and_with_schemas(asked):
    import anyio
    from mcp import Client

    async def listed():
        async with Client(asked.server) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(listed)
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.open_world_hint is False
        assert tool.output_schema["type"] == "object"
        assert len(tool.description) > 60
        assert all("description" in schema for schema in tool.input_schema["properties"].values()), tool.name


def test_a_line_answers_with_what_stands_on_it_narrowest_first(asked, indexed):
    line = line_of(indexed, indexed.second, "shop/money.py", "def charge")
    answer = asked.answer("find_provenance", file="shop/money.py", line=line)
    assert answer["answered_from"]["sha"] == indexed.second
    assert "symbol:shop.money.charge" in keys(answer)
    assert "symbol:shop.money.refund" not in keys(answer)
    places = [place for unit in answer["units"] for place in unit["provenance"]]
    assert all(place["sha"] == indexed.second for place in places)


def test_a_known_line_with_nothing_on_it_is_told_from_an_unknown_file(asked, indexed):
    blank = indexed.repo.git("show", f"{indexed.second}:shop/money.py").count("\n") + 1
    answer = asked.answer("find_provenance", file="README.md", line=900)
    assert answer["units"] == []
    assert answer["note"].startswith("nothing there")
    assert blank > 1
    error = asked.error("find_provenance", file="shop/mony.py", line=1)
    assert "unknown file" in error
    assert "shop/money.py" in error


def test_a_name_a_route_a_file_and_a_span_are_understood(asked, indexed):
    assert (
        keys(asked.answer("get_knowledge", target="symbol:shop.models.Order"))[0]
        == "symbol:shop.models.Order"
    )
    named = asked.answer("get_knowledge", target="shop.models.Order")
    assert named["matched"] == "name"
    assert "entity:shop.models.Order" in keys(named)
    route = asked.answer("get_knowledge", target="POST /orders")
    assert keys(route)[0] == "api:POST /orders"
    assert keys(asked.answer("get_knowledge", target="/orders"))[0] == "api:POST /orders"
    assert asked.answer("get_knowledge", target="shop/app.py")["matched"] == "file"
    span = route["units"][0]["provenance"][0]["span_id"]
    assert "api:POST /orders" in keys(asked.answer("get_knowledge", target=span))


def test_kinds_limit_what_is_known_of_a_target(asked):
    answer = asked.answer("get_knowledge", target="shop/app.py", kinds=["contract"], token_budget=20_000)
    assert keys(answer) == ["api:GET /health", "api:GET /items", "api:POST /orders"]
    nothing = asked.answer("get_knowledge", target="shop/app.py", kinds=["dependency"])
    assert nothing["units"] == []
    assert nothing["note"].startswith("nothing there")


def test_an_unknown_target_is_an_error_with_near_matches(asked):
    error = asked.error("get_knowledge", target="shop.models.Ordre")
    assert "unknown target" in error
    assert "shop.models.Order" in error


def test_search_finds_by_words_and_says_that_it_is_lexical(asked):
    answer = asked.answer("search_knowledge", query="takes the money", kinds=["symbol"])
    assert answer["hits"][0]["unit"]["key"] == "symbol:shop.money.charge"
    assert answer["mode"] == "lexical"
    assert any("kb embed" in note for note in answer["notes"])
    nothing = asked.answer("search_knowledge", query="xylophone")
    assert nothing["hits"] == []
    assert any(note.startswith("nothing there") for note in nothing["notes"])


def test_search_shows_two_of_a_file_first_and_says_where_more_is(asked):
    wide = asked.answer("search_knowledge", query="order total price item", k=4)
    files = [hit["unit"]["provenance"][0]["file"] for hit in wide["hits"]]
    assert max(map(files.count, files)) == 2
    (note,) = [note for note in wide["notes"] if "more that fits in shop/models.py (" in note]
    assert note.endswith("ask with folder set to the file")
    within = asked.answer("search_knowledge", query="order total price item", k=4, folder="shop/models.py")
    assert [hit["unit"]["provenance"][0]["file"] for hit in within["hits"]] == ["shop/models.py"] * 4
    assert not any("more that fits" in note for note in within.get("notes", ()))


def test_source_is_what_git_shows(asked, indexed):
    from kb.mcp.rendering import undelimited

    lines = indexed.repo.git("show", f"{indexed.first}:shop/billing.py").split("\n")
    answer = asked.answer("get_source", file="shop/billing.py", lines="6-8", sha=indexed.first)
    (excerpt,) = answer["excerpts"]
    assert undelimited(excerpt["source"]) == "\n".join(lines[5:8])
    assert (excerpt["start_line"], excerpt["end_line"], excerpt["sha"]) == (6, 8, indexed.first)
    wider = asked.answer("get_source", file="shop/billing.py", lines="6-8", sha=indexed.first, context=1)
    assert undelimited(wider["excerpts"][0]["source"]) == "\n".join(lines[4:9])
    whole = asked.answer("get_source", target="symbol:shop.money.refund")
    assert undelimited(whole["excerpts"][0]["source"]).startswith("def refund(amount: int) -> bool:")


def test_source_of_a_line_that_is_not_there_and_of_a_bad_range_are_told_apart(asked):
    assert "there is no line 900" in asked.error("get_source", file="shop/app.py", lines="900")
    assert "no range of lines" in asked.error("get_source", file="shop/app.py", lines="a-b")
    assert "runs backwards" in asked.error("get_source", file="shop/app.py", lines="9-3")
    assert "exactly one" in asked.error("get_source")
    assert "no span" in asked.error("get_source", span_id="ab" * 32)


def test_contracts_are_listed_and_filtered(asked, indexed):
    first = asked.answer("list_contracts", sha=indexed.first, token_budget=20_000)
    assert keys(first) == ["api:GET /items", "api:GET /orders/{order_id}", "api:POST /orders"]
    assert keys(asked.answer("list_contracts", method="POST")) == ["api:POST /orders"]
    assert keys(asked.answer("list_contracts", path="/items")) == ["api:GET /items"]
    assert keys(asked.answer("list_contracts", folder="shop", name="HEALTH")) == ["api:GET /health"]
    none = asked.answer("list_contracts", framework="flask")
    assert none["units"] == []
    assert none["note"] == (
        "nothing there: none of 3 units of kind contract fits the filters: "
        "none is of framework flask (here: fastapi (3))"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "near"),
    [
        ("list_contracts", {"folder": "shp"}, "unknown folder: shop has no file or folder 'shp'", "shop"),
        ("list_entities", {"folder": "./shop/model.py/"}, "unknown folder", "shop/models.py"),
        ("list_events", {"folder": "lib/shop"}, "unknown folder", "shop"),
        ("list_settings", {"folder": "money.py"}, "unknown folder", "shop/money.py"),
        ("search_knowledge", {"query": "order", "folder": "shp"}, "unknown folder", "shop"),
        ("list_contracts", {"framework": "fastpai"}, "unknown framework: 'fastpai'", "fastapi"),
        ("list_contracts", {"framework": "express"}, "unknown framework: 'express'", "django"),
        ("list_entities", {"framework": "Pydantics"}, "unknown framework", "pydantic"),
        ("list_events", {"family": "signals"}, "unknown family: 'signals'", "signal"),
        ("list_settings", {"family": "environment"}, "unknown family: 'environment'", "env"),
    ],
)
def test_a_filter_that_names_what_there_is_not_is_an_error_with_near_matches(
    asked, tool, arguments, said, near
):
    error, hint = asked.error(tool, **arguments).split("\nhint: ")
    assert said in error
    assert near in re.split(r"[:,] ", hint)[1:]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("list_entities", {"folder": "shop/money.py"}, "none stands in shop/money.py"),
        ("list_contracts", {"framework": "drf"}, "none is of framework django-rest-framework (here: fastapi"),
        ("list_contracts", {"framework": "FastAPI", "path": "/zzz"}, "no path has '/zzz' in it"),
        ("list_contracts", {"method": "PATCH", "name": "health"}, "none has the method PATCH"),
        ("list_contracts", {"method": "POST", "name": "health"}, "each of them passes some, and none passes all"),
        ("list_entities", {"field": "zzz"}, "none has a field 'zzz'"),
        ("list_settings", {"family": "command", "folder": "."}, "none is of family command (here: env ("),
    ],
)  # fmt: skip
def test_a_filter_that_nothing_passes_is_named(asked, tool, arguments, said):
    answer = asked.answer(tool, **arguments)
    assert answer["units"] == []
    assert answer["note"].startswith("nothing there: none of ")
    assert answer["note"].partition("fits the filters: ")[2].startswith(said)


def test_a_folder_is_read_as_it_is_written_in_a_shell(asked):
    everything = keys(asked.answer("list_contracts", token_budget=20_000))
    for folder in (".", "./", "/", "shop/", "./shop"):
        assert keys(asked.answer("list_contracts", folder=folder, token_budget=20_000)) == everything


def test_entities_events_and_settings_are_listed(asked):
    entities = keys(asked.answer("list_entities", token_budget=20_000))
    assert {"entity:shop.models.Item", "entity:shop.models.Order", "entity:shop.models.Receipt"} <= set(
        entities
    )
    assert keys(asked.answer("list_entities", field="weight")) == ["entity:shop.models.Item"]
    assert keys(asked.answer("list_entities", framework="dataclass")) == ["entity:shop.models.Receipt"]
    assert "setting:env:SHOP_CURRENCY" in keys(asked.answer("list_settings", family="env"))
    assert asked.answer("list_events", family="signal")["units"] == []


def test_dependents_are_who_imports_and_who_refers(asked):
    answer = asked.answer("dependents", target="shop.money")
    found = {(one["relation"], one["unit"]["key"]) for one in answer["dependents"]}
    assert ("imports", "import:shop.app->shop.money.charge") in found
    order = asked.answer("dependents", target="shop.models.Order")
    assert any(one["unit"]["key"] == "api:POST /orders" for one in order["dependents"])
    assert asked.answer("dependents", target="shop.money.refund")["dependents"] == []


def test_what_changed_comes_with_verdicts_breaking_first(asked, indexed):
    answer = asked.answer("diff_knowledge", base=indexed.first, kinds=["contract", "entity"])
    said = {change["key"]: (change["change"], change["compatibility"]) for change in answer["changes"]}
    assert said == {
        "api:GET /items": ("changed", "breaking"),
        "api:GET /orders/{order_id}": ("removed", "breaking"),
        "entity:shop.models.Item": ("changed", "breaking"),
        "api:GET /health": ("added", "compatible"),
    }
    assert answer["breaking"] == 3
    verdicts = [change["compatibility"] for change in answer["changes"]]
    assert verdicts == ["breaking", "breaking", "breaking", "compatible"]


def test_the_life_of_a_key_is_told_newest_first(asked, indexed):
    answer = asked.answer("history", key="api:GET /orders/{order_id}")
    assert [(moment["event"], moment["sha"]) for moment in answer["moments"]] == [
        ("removed", indexed.second),
        ("added", indexed.first),
    ]
    assert answer["commits"] == 2
    assert "unknown target" in asked.error("history", key="api:GET /nowhere/at/all")


def test_citations_are_verified_followed_and_refused(asked, indexed):
    held = asked.answer("verify_citation", file="shop/models.py", lines="9-11", sha=indexed.first)
    assert held["outcome"] == "verified"
    line = line_of(indexed, indexed.first, "shop/billing.py", "def charge")
    moved = asked.answer(
        "verify_citation", file="shop/billing.py", lines=f"{line}-{line + 2}", sha=indexed.first
    )
    assert moved["outcome"] == "moved"
    assert (moved["now"]["file"], moved["now"]["start_line"]) == ("shop/money.py", line + 1)
    start = line_of(indexed, indexed.first, "shop/models.py", "class Item")
    changed = asked.answer(
        "verify_citation", file="shop/models.py", lines=f"{start}-{start + 5}", sha=indexed.first
    )
    assert changed["outcome"] == "changed"
    gone = line_of(indexed, indexed.first, "shop/app.py", "def read_order")
    absent = asked.answer(
        "verify_citation", file="shop/app.py", lines=f"{gone}-{gone + 1}", sha=indexed.first
    )
    assert absent["outcome"] == "absent"
    assert (
        asked.answer("verify_citation", file="nope.py", lines="1", sha=indexed.first)["outcome"] == "absent"
    )


def test_quotes_and_claims_are_held_against_the_lines(asked, indexed):
    line = line_of(indexed, indexed.first, "shop/billing.py", "def charge")
    cited = {"file": "shop/billing.py", "lines": f"{line}-{line + 2}", "sha": indexed.first}
    told = asked.answer("verify_citation", **cited, quote="def   charge(amount: int)", against=indexed.first)
    assert (told["outcome"], told["quote_found"]) == ("verified", True)
    elsewhere = asked.answer("verify_citation", **cited, quote="def refund")
    assert elsewhere["outcome"] == "moved"
    assert elsewhere["now"]["start_line"] == line_of(indexed, indexed.first, "shop/billing.py", "def refund")
    never = asked.answer("verify_citation", **cited, quote="def steal")
    assert (never["outcome"], never["quote_found"]) == ("changed", False)
    claim = asked.answer("verify_citation", **cited, claim="charge takes an amount and a kangaroo")
    assert "kangaroo" in claim["claim_words_missing"]
    assert "amount" not in claim["claim_words_missing"]


def test_repositories_and_status_say_how_fresh_and_what_to_run(asked, indexed):
    (repository,) = asked.answer("list_repositories")["repositories"]
    assert repository["name"] == "shop"
    assert repository["head_sha"] == repository["newest_sha"] == indexed.second
    status = asked.answer("status")
    assert status["snapshot_count"] == 2
    assert status["kinds"]["contract"] == 3
    assert status["searchable"] is True
    assert any(command.startswith("kb embed") for command in status["run"])


def test_an_unindexed_commit_is_answered_by_its_nearest_ancestor_with_the_command(asked, indexed):
    third = indexed.repo.branch("ahead").checkout("ahead").write("extra.py", "x = 1\n").commit("third").sha()
    try:
        answer = asked.answer("get_knowledge", target="shop.money", sha=third)
        source = answer["answered_from"]
        assert source["sha"] == indexed.second
        assert third[:12] in source["run"]
        assert source["run"].startswith("kb index ")
        assert "nearest indexed ancestor" in source["notice"]
        assert "neither" in asked.error("get_knowledge", target="x", sha=orphan(indexed.repo))
    finally:
        indexed.repo.checkout("main")


def orphan(repo):
    tree = repo.git("write-tree")
    return repo.git("commit-tree", tree, "-m", "from nowhere")


def test_a_commit_that_does_not_exist_and_a_repository_that_is_unknown_are_errors(asked):
    assert "f00df00d" in asked.error("list_contracts", sha="f00df00d")
    assert "no indexed repository" in asked.error("list_contracts", repo="nope")


def test_freshness_says_what_became_of_an_old_snapshots_units(asked, indexed):
    answer = asked.answer("get_knowledge", target="symbol:shop.billing.charge", sha=indexed.first)
    assert answer["answered_from"]["commits_behind"] == 1
    assert answer["units"][0]["freshness"]["status"] == "moved"
    current = asked.answer("get_knowledge", target="symbol:shop.money.charge")
    assert current["units"][0]["freshness"]["status"] == "current"


def test_nothing_is_sent_twice_in_text_and_structure(asked):
    result = asked.result("get_knowledge", target="shop.money.charge", kinds=["symbol"])
    assert len(result.structured_content["units"]) == 1
    assert result.content[0].text == "1 unit"
    assert len(result.content) == 1


def test_a_server_for_text_clients_sends_the_data_as_text_alone(library):
    from kb.mcp.server import build_server
    from tests.mcp.conftest import Asked

    result = Asked(build_server(library, answers="text")).result("list_contracts", method="POST")
    assert result.structured_content is None
    assert json.loads(result.content[0].text)["units"][0]["key"] == "api:POST /orders"


def test_arguments_that_do_not_fit_are_refused_before_anything_is_asked(asked):
    assert "line" in asked.error("find_provenance", file="a.py", line=0)
    assert "token_budget" in asked.error("list_contracts", token_budget=5)
    assert "empty" in asked.error("search_knowledge", query="   ")


def test_the_newer_protocol_gives_the_same_answers(server, asked):
    from tests.mcp.conftest import Asked

    newer = Asked(server, mode="auto").answer("list_contracts")
    assert newer == asked.answer("list_contracts")
