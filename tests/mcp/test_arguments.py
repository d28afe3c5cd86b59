"""What does not fit a tool is told in one line that says what to do; nothing that is given is passed over."""

from __future__ import annotations

import base64

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from kb.mcp.server import build_server
from tests.mcp.conftest import Asked


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "find_provenance",
            {"file": "a.py", "line": "abc"},
            (
                "line is 'abc': input should be a valid integer, unable to parse string as an integer\n"
                "hint: line: 1-based line number."
            ),
        ),
        ("find_provenance", {"file": "a.py"}, "line is missing\nhint: line: 1-based line number."),
        (
            "list_contracts",
            {"method": "FETCH"},
            (
                "method is 'FETCH': input should be 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS' or "
                "'WEBSOCKET'\nhint: method: Only this HTTP method."
            ),
        ),
        (
            "status",
            {"repo": ["shop"]},
            (
                "repo is ['shop']: input should be a valid string\nhint: repo: Name of the repository "
                "(list_repositories). Needed only where several are indexed."
            ),
        ),
        (
            "dependents",
            {"target": "Order", "limit": 101},
            (
                "limit is 101: input should be less than or equal to 100\n"
                "hint: limit: Most units of one page. Default: as fit."
            ),
        ),
    ],
)
def test_what_does_not_fit_is_told_in_one_line_with_what_the_argument_takes(asked, tool, arguments, said):
    assert asked.error(tool, **arguments) == f"Error executing tool {tool}: [usage] {said}"


@pytest.mark.parametrize(
    "value",
    ["x" * 100_000, ["y" * 100_000] * 10, {"a": {"b": "\n" * 1000}}, "\ud800" * 5000, 10**300, None, True],
)
def test_what_is_given_is_shown_short_and_on_one_line_whatever_it_is(asked, value):
    for tool, name in (("get_knowledge", "target"), ("get_source", "lines"), ("dependents", "limit")):
        arguments = {"target": "Order", name: value}
        result = asked.result(tool, **arguments)
        said = result.content[0].text
        assert not result.is_error or (len(said) < 600 and said.count("\n") <= 1), said
        assert "pydantic" not in said
        assert "validation error" not in said


def test_an_argument_that_there_is_not_is_refused_and_the_one_that_is_meant_is_named(asked):
    assert asked.error("get_knowledge", target="Order", kind=["entity"]) == (
        "Error executing tool get_knowledge: [usage] there is no argument 'kind'\n"
        "hint: did you mean kinds? it takes target, sha, kinds, repo, token_budget, cursor"
    )
    assert "no argument 'x', 'y'" in asked.error("status", x=1, y=2)


def test_an_optional_argument_that_is_empty_is_one_that_is_not_given(asked):
    empty = {"repo": "", "sha": "", "cursor": "", "folder": "", "name": "", "method": ""}
    assert asked.answer("list_contracts", **empty) == asked.answer("list_contracts")
    assert asked.answer("get_source", target="", file="README.md", lines="1")["total"] == 1
    assert "target is ''" in asked.error("get_knowledge", target="")


def test_lines_go_with_a_file(asked):
    assert "lines are those of a file" in asked.error("get_source", target="shop.models.Order", lines="3")


def test_refused_arguments_are_counted_and_an_unknown_tool_is_no_label(library):
    told: list[tuple[str, str]] = []
    server = build_server(library, observer=lambda tool, outcome, _: told.append((tool, outcome)))
    asked = Asked(server)
    asked.error("find_provenance", file="a.py", line=0)
    asked.error("get_knowledge", target="Order", kind="x")
    asked.error("no_such_tool")
    asked.answer("list_repositories")
    assert told == [
        ("find_provenance", "UsageError"),
        ("get_knowledge", "UsageError"),
        ("list_repositories", "ok"),
    ]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_contracts", {}),
        ("get_knowledge", {"target": "shop/models.py"}),
        ("search_knowledge", {"query": "order", "token_budget": 1000}),
        ("get_source", {"target": "shop.models.Order", "token_budget": 1000}),
        ("dependents", {"target": "shop.models.Order", "limit": 1}),
        ("history", {"key": "symbol:shop.models.Item", "limit": 1}),
        ("diff_knowledge", {"base": "HEAD~1"}),
    ],
)
def test_a_cursor_beyond_the_end_is_refused(server, asked, indexed, tool, arguments):
    """Made from a cursor of the list by whoever can read one."""

    async def ask():
        async with Client(server, mode="legacy") as client:
            limit = {"limit": 1} if tool in ("list_contracts", "diff_knowledge") else {}
            page = await client.call_tool(tool, {"token_budget": 1000, **arguments, **limit})
            return page.structured_content, limit

    page, limit = anyio.run(ask)
    cursor = page["next_cursor"]
    packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    snapshot, _, *rest = packed.split(".")
    for offset in (page["total"], page["total"] + 1, 10**40):
        forged = (
            base64.urlsafe_b64encode(".".join([snapshot, str(offset), *rest]).encode()).decode().rstrip("=")
        )
        said = asked.error(tool, **{"token_budget": 1000, **arguments, **limit}, cursor=forged)
        assert "beyond the end of the list" in said


def test_kinds_that_nothing_is_of_are_told_beside_what_there_is(asked):
    known = asked.answer("get_knowledge", target="shop.models.Order", kinds=["entity", "contracts"])
    assert known["note"].startswith("no unit is of kind contracts; kinds here: contract, ")
    assert {unit["kind"] for unit in known["units"]} == {"entity"}
    found = asked.answer("search_knowledge", query="order", kinds=["symbol", "contracts"])
    assert found["hits"]
    assert any(note.startswith("no unit is of kind contracts;") for note in found["notes"])


def test_a_diff_of_some_kinds_does_not_say_that_nothing_else_changed(asked, indexed):
    none = asked.answer("diff_knowledge", base=indexed.first, head=indexed.second, kinds=["bogus"])
    assert none["notes"][0] == "nothing there: both snapshots know the same of kind bogus"
    assert none["notes"][1].startswith("no unit is of kind bogus; kinds here: contract, ")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("prompt", "arguments", "said"),
    [
        (
            "nope",
            {},
            "[notfound] no prompt is 'nope'\nhint: there are: onboard, explain_route, review_diff, what_changed",
        ),
        (
            "explain_route",
            {"repo": "shop"},
            (
                "[usage] route is missing\nhint: route: Method and path: GET /orders/{id}; repo: Name of the repository; "
                "empty for the only one."
            ),
        ),
        (
            "onboard",
            {"rep": "shop"},
            "[usage] there is no argument 'rep'\nhint: repo: Name of the repository; empty for the only one.",
        ),
    ],
)
def test_what_does_not_fit_a_prompt_is_told(server, mode, prompt, arguments, said):
    async def ask():
        async with Client(server, mode=mode) as client:
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(prompt, arguments)
            return refused.value

    refused = anyio.run(ask)
    assert (refused.code, refused.message) == (-32602, said)
