"""Tools that list: contracts, entities, events, settings, and what is indexed at all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp_types import CallToolResult
from pydantic import Field

from kb.mcp import arguments as a
from kb.mcp.calls import Calls
from kb.mcp.registering import register
from kb.mcp.rendering import Answers
from kb.retrieve import listing, overview
from kb.retrieve.listing import ListFilter, list_units
from kb.retrieve.overview import RepositoriesAnswer, StatusAnswer
from kb.retrieve.pages import UnitsAnswer

_Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "WEBSOCKET"]


def add_listing_tools(server: MCPServer[Any], calls: Calls, answers: Answers) -> None:
    """The six tools."""

    def list_contracts(
        method: Annotated[_Method | None, Field(description="Only this HTTP method.")] = None,
        path: Annotated[
            str | None,
            Field(
                max_length=1000,
                description="Beginning of the route's path: /api/orders; where none begins so, part of it.",
            ),
        ] = None,
        framework: Annotated[
            str | None, Field(max_length=50, description="fastapi, flask, starlette, django or drf.")
        ] = None,
        name: a.NamePart = None,
        folder: a.Folder = None,
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """The HTTP and websocket ROUTES of the repository: method, path, handler, parameters, request body, responses, security. Filter to keep it short; get_knowledge("GET /orders") for one."""
        wanted = ListFilter(
            listing.CONTRACTS,
            name,
            folder,
            framework or None,
            methods=(method,) if method else (),
            route=path,
        )
        return calls.answer(
            "list_contracts", list_units, wanted,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    def list_entities(
        name: a.NamePart = None,
        framework: Annotated[
            str | None,
            Field(
                max_length=50,
                description="pydantic, sqlalchemy, sqlmodel, django, dataclass, attrs, enum, typeddict...",
            ),
        ] = None,
        field: Annotated[
            str | None, Field(max_length=200, description="Only those with a field of this name.")
        ] = None,
        folder: a.Folder = None,
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """The DATA SHAPES of the repository: models, tables, dataclasses, enums, with fields, types, keys and relations. Filter by name, framework, or a field that they have."""
        wanted = ListFilter(listing.ENTITIES, name, folder, framework or None, has_field=field or None)
        return calls.answer(
            "list_entities", list_units, wanted,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    def list_events(
        family: Annotated[
            str | None,
            Field(
                max_length=50,
                description="signal, task, topic, hook, validator, lifespan, on_event, cache, dynamic.",
            ),
        ] = None,
        name: a.NamePart = None,
        folder: a.Folder = None,
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """What happens BY ITSELF or across modules: signals, tasks and their schedules, message topics, hooks, startup and shutdown, validators, caches; each with its emitters and handlers."""
        wanted = ListFilter(listing.EVENTS, name, folder, family=family or None)
        return calls.answer(
            "list_events", list_units, wanted,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    def list_settings(
        family: Annotated[
            str | None,
            Field(
                max_length=50, description="env, django, flask, field (settings classes), dynamic, command."
            ),
        ] = None,
        name: a.NamePart = None,
        folder: a.Folder = None,
        sha: a.CommitIsh = None,
        repo: a.Repo = None,
        limit: a.Limit = None,
        token_budget: a.TokenBudget = a.BUDGET,
        cursor: a.CursorText = None,
    ) -> Annotated[CallToolResult, UnitsAnswer]:
        """The CONFIGURATION of the repository: environment variables, settings and their defaults, who reads them, and its command lines with their options."""
        wanted = ListFilter(listing.SETTINGS, name, folder, family=family or None)
        return calls.answer(
            "list_settings", list_units, wanted,
            repo=repo, sha=sha, paging=calls.paging(token_budget, cursor, limit),
        )  # fmt: skip

    def list_repositories(
        token_budget: a.TokenBudget = a.BUDGET, cursor: a.CursorText = None
    ) -> Annotated[CallToolResult, RepositoriesAnswer]:
        """The REPOSITORIES that this server knows, with how far each is behind HEAD. Call it first when you do not know what `repo` can be."""
        return calls.answer(
            "list_repositories", overview.list_repositories, paging=calls.paging(token_budget, cursor)
        )

    def status(
        repo: a.Repo = None, sha: a.CommitIsh = None, token_budget: a.WholeBudget = a.BUDGET
    ) -> Annotated[CallToolResult, StatusAnswer]:
        """How COMPLETE and FRESH the knowledge of a repository is: indexed commits, counts by kind, files that could not be read and why, whether search works, and the commands to run for what is missing."""
        return calls.answer(
            "status", overview.repository_status, repo=repo, sha=sha, budget=calls.budget(token_budget)
        )

    for tool, title in (
        (list_contracts, "Routes"),
        (list_entities, "Data shapes"),
        (list_events, "Events"),
        (list_settings, "Configuration"),
        (list_repositories, "Repositories"),
        (status, "Status"),
    ):
        register(server, tool, title, answers)
