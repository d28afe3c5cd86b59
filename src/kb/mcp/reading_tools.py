"""Tools that read knowledge: by place, by name, by words, its code, and who depends on it."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp_types import CallToolResult
from pydantic import Field

from kb.mcp import arguments as a
from kb.mcp.calls import Calls
from kb.mcp.registering import register
from kb.mcp.rendering import Answers
from kb.retrieve import answering, knowledge, provenance, source
from kb.retrieve import dependents as dependents_of
from kb.retrieve.answering import SearchAnswer
from kb.retrieve.dependents import DependentsAnswer
from kb.retrieve.pages import UnitsAnswer
from kb.retrieve.source import SourceAnswer


def add_reading_tools(server: MCPServer[Any], calls: Calls, answers: Answers) -> None:
    """The five tools."""

    def find_provenance(
        file: a.FilePath,
        line: Annotated[int, Field(ge=1, description="1-based line number.")],
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """What kb knows about ONE LINE of a file: every route, model, import, setting or definition that stands on it, the narrowest first. Use it when you look at code and want to know what it is part of. Not for whole files or names: get_knowledge."""
        return calls.answer(
            "find_provenance", provenance.find_provenance, file, line,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor),
        )  # fmt: skip

    def get_knowledge(
        target: a.TargetName,
        sha: a.CommitIsh = None,
        kinds: a.Kinds = None,
        repo: a.Repo = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """Everything kb knows about a thing you can NAME: a symbol, class, module, file or route. The thing itself comes first, then what stands on the same lines, then its parts. An unknown name is an error with near matches. Use search_knowledge when you have only words."""
        return calls.answer(
            "get_knowledge", knowledge.get_knowledge, target,
            repo=repo, sha=sha, kinds=kinds or (), paging=calls.paging(token_budget, cursor),
        )  # fmt: skip

    def search_knowledge(
        query: Annotated[
            str, Field(min_length=1, max_length=2000, description="Words, identifiers or a question.")
        ],
        sha: a.CommitIsh = None,
        k: Annotated[int, Field(ge=1, le=100, description="Most hits, all pages together.")] = 10,
        kinds: a.Kinds = None,
        folder: Annotated[
            str | None, Field(max_length=4096, description="Only what stands under this folder or glob.")
        ] = None,
        repo: a.Repo = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find units by WORDS when you do not know the name: identifiers in any spelling (getUserById finds get_user_by_id), quoted phrases, plain questions. Best first, two of a file; `notes` name files that hold more: ask again with that file as folder. A low coverage means that the repository has no real answer. For a known name get_knowledge is exact."""
        return calls.answer(
            "search_knowledge", answering.search_knowledge, query,
            repo=repo, sha=sha, k=k, kinds=kinds or (), path=folder,
            paging=calls.paging(token_budget, cursor),
        )  # fmt: skip

    def get_source(
        target: Annotated[
            str | None, Field(max_length=1000, description="As in get_knowledge; give this, span_id or file.")
        ] = None,
        span_id: Annotated[
            str | None, Field(max_length=64, description="From provenance: every place where it stands.")
        ] = None,
        file: Annotated[
            str | None, Field(max_length=4096, description="A file, with lines or whole.")
        ] = None,
        lines: Annotated[
            str | None, Field(max_length=30, description="With file: 12 or 12-20; default the whole file.")
        ] = None,
        sha: a.CommitIsh = None,
        context: Annotated[int, Field(ge=0, le=200, description="Lines before and after.")] = 0,
        repo: a.Repo = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, SourceAnswer]:
        """The EXACT LINES of code at a commit, of a name, a span or a file, whatever the working tree holds now. Use it to quote or read code that an answer cites. Give exactly one of target, span_id and file."""
        wanted = source.Wanted(target=target, span_id=span_id, file=file, lines=lines, context=context)
        return calls.answer(
            "get_source", source.get_source, wanted,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor),
        )  # fmt: skip

    def dependents(
        target: a.TargetName,
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, DependentsAnswer]:
        """WHO USES a symbol, class or module: what imports it, extends it, handles it or refers to it, with the lines that do. Use it before you change or remove something. Calls are not among them yet."""
        return calls.answer(
            "dependents", dependents_of.dependents, target,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    for tool, title in (
        (find_provenance, "Knowledge of a line"),
        (get_knowledge, "Knowledge of a name"),
        (search_knowledge, "Search knowledge"),
        (get_source, "Source at a commit"),
        (dependents, "Who depends on it"),
    ):
        register(server, tool, title, answers)
