"""Tools that compare commits: what changed, the life of a key, and whether a citation still holds."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp_types import CallToolResult
from pydantic import Field

from kb.mcp import arguments as a
from kb.mcp.calls import Calls
from kb.mcp.registering import register
from kb.mcp.rendering import Answers
from kb.retrieve import diff, verify
from kb.retrieve import history as life
from kb.retrieve.diff import DiffAnswer
from kb.retrieve.history import HistoryAnswer
from kb.retrieve.verify import Citation, Verdict

_Commit = Annotated[str, Field(min_length=1, max_length=1000, description="SHA, branch or tag.")]


def add_comparing_tools(server: MCPServer[Any], calls: Calls, answers: Answers) -> None:
    """The three tools."""

    def diff_knowledge(
        base: _Commit,
        head: Annotated[
            str | None, Field(max_length=1000, description="SHA, branch or tag. Default: HEAD.")
        ] = None,
        kinds: a.Kinds = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, DiffAnswer]:
        """WHAT CHANGED between two indexed commits in meaning, not in text: routes, models, settings, definitions, imports added, removed, changed or moved. Contracts and entities come with breaking or compatible, and why; breaking ones first, those of tests and examples last and not judged. Formatting and comments never show."""
        return calls.answer(
            "diff_knowledge", diff.diff_knowledge, base, head,
            repo=repo, kinds=kinds or (), paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    def history(
        key: Annotated[
            str, Field(min_length=1, max_length=1000, description="A logical key, or a name for one.")
        ],
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, HistoryAnswer]:
        """WHEN one thing (route, model, symbol, setting) was added, changed or removed, in the history of HEAD as far as it is indexed, newest first."""
        return calls.answer(
            "history", life.history, key, repo=repo, paging=calls.paging(token_budget, cursor, limit)
        )

    def verify_citation(
        file: a.FilePath,
        lines: Annotated[str, Field(min_length=1, max_length=30, description="12 or 12-20.")],
        sha: Annotated[str, Field(min_length=1, max_length=1000, description="The commit that is cited.")],
        quote: Annotated[
            str | None, Field(max_length=4000, description="Text that should stand on the lines.")
        ] = None,
        claim: Annotated[
            str | None,
            Field(max_length=4000, description="What is said of the lines; its words are looked for there."),
        ] = None,
        against: Annotated[
            str, Field(min_length=1, max_length=1000, description="Commit to compare with. Default: HEAD.")
        ] = "HEAD",
        repo: a.Repo = None,
        token_budget: a.WholeBudget = a.BUDGET,
    ) -> Annotated[CallToolResult, Verdict]:
        """CHECK a citation file:lines@sha before you rely on it or repeat it: verified, moved (and to where), changed, or absent, followed by the identity of the code and not by line numbers. Works for every commit that git has, indexed or not."""
        citation = Citation(file, lines, sha, quote, claim, against)
        return calls.answer(
            "verify_citation", verify.verify_citation, citation, repo=repo, budget=calls.budget(token_budget)
        )

    for tool, title in (
        (diff_knowledge, "What changed"),
        (history, "Life of a key"),
        (verify_citation, "Check a citation"),
    ):
        register(server, tool, title, answers)
